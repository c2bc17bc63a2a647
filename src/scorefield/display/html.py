"""Self-contained HTML pages: tables, pictures inside the file, a style for screen, phone and print."""

import base64
import html
import io

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 0 auto; max-width: 68rem;
       padding: 1rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; }
h2 { margin-top: 2.5rem; border-top: 2px solid #0072B2; padding-top: .6rem; }
nav ul { columns: 18rem; padding-left: 1.2rem; } a { color: #005a8d; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; margin: .4rem 0 1.2rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { border-bottom: 1px solid #d5d5d5; padding: .25rem .6rem; text-align: left; vertical-align: top;
         font-variant-numeric: tabular-nums; }
th { background: #f2f6f9; }
figure { margin: 1rem 0; break-inside: avoid; } img { max-width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #444; }
.verdict { font-weight: 600; white-space: nowrap; }
.good { color: #00694d; } .noise { color: #7a5b00; } .bad { color: #a33f00; }
details { margin: .5rem 0; } pre { white-space: pre-wrap; font-size: .8rem; background: #f6f6f6; padding: .6rem; }
@media print { body { max-width: none; font-size: 11px; } h2 { break-before: page; } nav { display: none; } }
@media (max-width: 40rem) { body { padding: .5rem .75rem 3rem; } }
"""


class Raw(str):
    """Text that is HTML already and is not escaped again."""


def text(value):
    """A value as HTML text."""
    return value if isinstance(value, Raw) else Raw(html.escape(str(value)))


def tag(name, *content, **attributes):
    """An element; a trailing underscore in an attribute's name is dropped (`class_`)."""
    given = "".join(f' {key.rstrip("_")}="{html.escape(str(value), quote=True)}"' for key, value in attributes.items())
    return Raw(f"<{name}{given}>{''.join(text(part) for part in content)}</{name}>")


def table(caption, columns, rows):
    """A table that scrolls by itself on a narrow screen."""
    head = tag("thead", tag("tr", *(tag("th", column, scope="col") for column in columns)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag("div", tag("table", tag("caption", caption), head, body), class_="scroll")


def picture(figure, caption, *, dpi=110):
    """A matplotlib figure inside the page; the figure is closed."""
    import matplotlib.pyplot as plt

    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi)
    plt.close(figure)
    source = "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
    image = Raw(f'<img src="{source}" alt="{html.escape(caption, quote=True)}">')
    return tag("figure", image, tag("figcaption", caption))


def page(title, body):
    """A whole document; it asks the network for nothing, not even an icon."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{"".join(map(str, body))}</body></html>\n'
