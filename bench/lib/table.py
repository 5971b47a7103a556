"""Aligned tables for the terminal."""


def format_table(header, rows):
    """Aligns the first column left, all others right, each as wide as its widest cell."""
    cells = [header, *rows]
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(header))]

    def line(row):
        first = str(row[0]).ljust(widths[0])
        return "  ".join([first, *(str(c).rjust(w) for c, w in zip(row[1:], widths[1:]))]).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(header), rule, *map(line, rows)])


def number(value):
    """Three or four significant digits."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
