#!/bin/bash
# `shima simulate`: options, errors, the forms of its results.
# FLAVOURS: none
set -euo pipefail
# shellcheck source=tests/tool/common.sh
. "$SHIMA_SOURCE_DIR/tests/tool/common.sh"

expect_refusal 'a number of ranks is' 'no number' "$SHIMA" simulate --ranks 512,many
expect_refusal 'a number of ranks is' 'too many ranks' "$SHIMA" simulate --ranks 99999999
expect_refusal 'pattern' 'unknown pattern' "$SHIMA" simulate --pattern rows
expect_refusal 'no number of bytes' 'no size' "$SHIMA" simulate --bytes-per-rank lots
expect_refusal 'larger than all bytes' 'large pieces' "$SHIMA" simulate --ranks 4 --piece 2M
expect_refusal 'no such value' 'unknown value' "$SHIMA" simulate --ranks 4 --set warp=9
expect_refusal 'a value is NAME=NUMBER' 'no value' "$SHIMA" simulate --ranks 4 --set turn_us
expect_refusal 'cannot be read' 'no machine' "$SHIMA" simulate --ranks 4 --machine nothere
echo '[1]' >list.json
expect_refusal 'not a JSON object' 'not an object' "$SHIMA" simulate --ranks 4 --machine list.json
expect_refusal 'cannot be written' 'no directory' "$SHIMA" simulate --ranks 4 --json nothere/x
expect_status 0 'help' "$SHIMA" simulate --help
expect_output '--ranks-per-node' 'help'

echo '{"turn_us": 7, "shared_cores": 2}' >machine.json
for pattern in columns blocks irregular one_rank; do
  expect_status 0 "$pattern" "$SHIMA" simulate --ranks 16,256 --ranks-per-node 16 --pattern $pattern \
    --strategy subgroup --machine machine.json --json $pattern.json --html $pattern.html
  expect_output '256 +16' "$pattern"
done
expect_status 0 'stdout' "$SHIMA" simulate --ranks 8 --ranks-per-node 4 --direction read --cached --json -
mv out read.json

python3 - <<'PYTHON' || fail 'the results are not well-formed'
import html.parser
import json

OPEN = {"meta", "br"}


class Balance(html.parser.HTMLParser):
    """Checks that tags are closed in order, and that the page refers to no other file."""
    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attributes):
        assert not {"src", "href"} & dict(attributes).keys(), attributes
        if tag not in OPEN:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


for pattern in ("columns", "blocks", "irregular", "one_rank"):
    report = json.load(open(f"{pattern}.json"))
    assert [scale["ranks"] for scale in report["scales"]] == [16, 256]
    assert report["workload"]["pattern"] == pattern
    assert report["machine"]["turn_us"] == 7
    assert report["scales"][1]["strategy"] == "subgroup"
    assert report["scales"][1]["reason"] == "hint"
    assert report["scales"][1]["path"] == "message"
    assert report["scales"][1]["agents"] == (1 if pattern == "one_rank" else 256)
    assert report["limits"]
    page = Balance()
    text = open(f"{pattern}.html").read()
    page.feed(text)
    assert not page.open and text.count("<svg") == 4, page.open
report = json.load(open("read.json"))
assert report["workload"]["direction"] == "read"
assert report["scales"][0]["strategy"] == "independent"
assert report["scales"][0]["reason"] == "cached_read"
PYTHON
finish
