"""The licences of what is shipped: a list, and an error for each that is unknown or not allowed.

`make licences`. A copyleft licence that a package may have all the same is named here with the package and the reason.
"""

import sys
from collections.abc import Iterable

from license_expression import ExpressionError, ExpressionParseError, LicenseSymbol, get_spdx_licensing

from supply.shipped import Shipped, shipped

ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "PSF-2.0",
        "Zlib",
    }
)
# By package: further licences, each because it asks nothing of those who only use the package.
EXCEPTIONS: dict[str, frozenset[str]] = {}

_SPDX = get_spdx_licensing()


def problem(one: Shipped) -> str:
    """What is wrong with a package's licence; empty if nothing is."""
    allowed = ALLOWED | EXCEPTIONS.get(one.name, frozenset())
    if not one.licence:
        return f"{one.name} {one.version}: states no licence; look it up, and name it in supply/shipped.py"
    try:
        parsed = _SPDX.parse(one.licence, validate=True)
    except (ExpressionError, ExpressionParseError):
        return f"{one.name} {one.version}: unknown licence {one.licence!r}; expected an SPDX expression"
    # Every licence of an alternative has to be allowed too: simpler, and stricter.
    terms = {term.key for term in parsed.symbols if isinstance(term, LicenseSymbol)}
    refused = sorted(terms - allowed)
    if not refused:
        return ""
    return f"{one.name} {one.version}: licence {', '.join(refused)} is not on the list of allowed ones in supply/licences.py"


def table(packages: Iterable[Shipped]) -> str:
    rows = [(one.name, one.version, one.licence or "unknown") for one in packages]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(
        f"{name:{widths[0]}}  {version:{widths[1]}}  {licence}" for name, version, licence in rows
    )


def main() -> int:
    packages = shipped()
    sys.stdout.write(table(packages) + "\n")
    problems = [*filter(None, map(problem, packages))]
    sys.stderr.writelines(f"error: {one}\n" for one in problems)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
