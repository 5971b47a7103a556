"""Looks at the pages of `shima bench`: their HTML, and what headless Chromium shows of them."""

import html.parser
import pathlib
import struct
import subprocess
import tempfile
import zlib

DARK, LIGHT = 0, 1
BROWSER = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"]
ALONE = {"meta", "br", "line", "rect", "circle", "path", "polyline", "polygon"}


class Balance(html.parser.HTMLParser):
    """Checks that tags are closed in order and that the page needs no other file; counts tags and keeps the text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.counts, self.words = [], {}, []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        assert "src" not in named and named.get("href", "#").startswith("#"), attributes
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in ALONE or tag == "rect":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.words.append(data)

    def text(self):
        return " ".join(self.words)


def parse_page(path):
    text = pathlib.Path(path).read_text()
    assert "url(" not in text and "@import" not in text and "<script" not in text
    for wrong in ("nan", "inf", "None"):
        assert f'"{wrong}"' not in text and f">{wrong}<" not in text, wrong
    return Balance(text)


def browse(page, *arguments, scheme=LIGHT, width=800, height=500):
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run([*BROWSER, f"--user-data-dir={profile}", f"--blink-settings=preferredColorScheme={scheme}",
                               f"--window-size={width},{height}", *arguments, pathlib.Path(page).absolute().as_uri()],
                              check=True, capture_output=True, text=True, timeout=100).stdout


def decode(path):
    """The size of a PNG of 8 bits a colour, and its rows of (red, green, blue)."""
    data, at, packed = pathlib.Path(path).read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert (depth, interlaced) == (8, 0)
            each = {2: 3, 6: 4}[colours]
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    raw, line, rows = zlib.decompress(packed), bytearray(width * each), []
    for y in range(height):
        begin = y * (width * each + 1)
        line = unfilter(raw[begin], bytearray(raw[begin + 1:begin + 1 + width * each]), line, each)
        rows.append([tuple(line[x:x + 3]) for x in range(0, width * each, each)])
    return width, height, rows


def unfilter(kind, line, above, each):
    for i in range(len(line) if kind else 0):
        left, up = line[i - each] if i >= each else 0, above[i]
        corner = above[i - each] if i >= each else 0
        if kind == 4:
            near = min((abs(up - corner), 0, left), (abs(left - corner), 1, up), (abs(left + up - 2 * corner), 2, corner))
        line[i] = (line[i] + {1: left, 2: up, 3: (left + up) // 2, 4: near[2] if kind == 4 else 0}[kind]) & 255
    return line


def brightness(colour):
    return sum(colour) / 3


def check_shown(page, scheme, width=800, height=500):
    """The page fills its window in the scheme's colours, with readable text; returns its colours."""
    picture = pathlib.Path(f"{pathlib.Path(page).stem}-{'dark' if scheme == DARK else 'light'}.png")
    browse(page, f"--screenshot={picture.absolute()}", scheme=scheme, width=width, height=height)
    found_width, found_height, rows = decode(picture)
    assert (found_width, found_height) == (width, height)
    counts = {}
    for row in rows:
        for colour in row:
            counts[colour] = counts.get(colour, 0) + 1
    ground = brightness(rows[0][0])
    assert ground < 60 if scheme == DARK else ground > 220, rows[0][0]
    ink = sum(count for colour, count in counts.items() if abs(brightness(colour) - ground) > 120)
    assert ink > 0.005 * width * height, f"only {ink} pixels in contrast to the ground"
    return counts


def overflow(page, width):
    """By how many pixels the page is wider than its window."""
    copy = pathlib.Path(page).with_suffix(".copy.html")
    text = pathlib.Path(page).read_text()
    copy.write_text(text.replace("</body>", "<script>document.title = document.documentElement.scrollWidth - innerWidth</script></body>"))
    shown = browse(copy, "--dump-dom", width=width)
    return int(shown.split("<title>")[1].split("</title>")[0])
