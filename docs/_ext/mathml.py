"""Formulas as MathML, which browsers draw without a script, a font or the network."""

import itertools
from xml.etree import ElementTree

from latex2mathml.converter import convert

NO_SPACE = {"lspace": "0", "rspace": "0"}


def formula(latex, display="inline"):
    """MathML of a formula, with the spaces that TeX would set and latex2mathml leaves out."""
    math = ElementTree.fromstring(convert(latex, xmlns="", display=display))
    bars = (element for element in math.iter("mo") if element.text == "|")
    for bar, form in zip(bars, itertools.cycle(("prefix", "postfix")), strict=False):
        bar.attrib.update(form=form, **NO_SPACE)
    for row in math.iter("mrow"):
        for left, right in itertools.pairwise(list(row)):
            if left.tag == "mo" and left.text != ")" and right.text == "\N{MINUS SIGN}":
                right.attrib.update(form="prefix", **NO_SPACE)
            if left.tag == "mi" and len(left.text) > 1 and right.tag != "mo":  # a function's name before its argument
                row.insert(list(row).index(right), ElementTree.Element("mspace", width="0.167em"))
    return ElementTree.tostring(math, encoding="unicode")


def visit_inline(translator, node):
    translator.body.append(formula(node.astext()))
    node.children = []  # the text of the formula is not repeated


def visit_block(translator, node):
    tag = translator.starttag(node, "div", "", CLASS="formula")
    translator.body.append(tag + formula(node.astext(), "block") + "</div>\n")
    node.children = []


def nothing(translator, node):
    """Close nothing: both visitors write the whole element."""


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, nothing), (visit_block, nothing))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
