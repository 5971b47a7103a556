"""The experiments of the five documents and what belongs to them, one section each (lib/section.py).

`shima bench` and `make bench` run them. The other sections of `make bench` are in bench/sections.
"""
