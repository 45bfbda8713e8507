"""The lines that commands print, on standard output and standard error; tables are made by `tables.py`.

All text of commands goes through here, so that nothing in it controls a terminal. Two texts do not: the shells'
completion scripts and the definitions of custom resources, which come with this package and stay exact.
"""

import click

from maniple.objects.printable import printable_lines


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a message of one line or several."""
    click.echo(printable_lines(text), err=err, nl=nl)


__all__ = ["echo"]
