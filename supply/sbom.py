"""The bill of materials: what is shipped, with versions, licences and the hashes of the lock, in CycloneDX's format.

`make sbom` writes it. The same commit and lock give the same file; its time is that of the commit.
"""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.hash.factories import HashTypeFactory
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from supply.lock import locked
from supply.shipped import ITSELF, Shipped, shipped

_NO_COMMIT = "1704067200"  # as in the Dockerfile


def bill(packages: list[Shipped], when: datetime) -> Bom:
    hashes = {(one.name, one.version): one.hashes for one in locked()}
    components = {one.name: _component(one, hashes.get((one.name, one.version), ())) for one in packages}
    content = "\n".join(f"{one.name}=={one.version}" for one in packages)
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, content))
    bom.metadata.component = components[ITSELF]
    bom.metadata.timestamp = when
    bom.components = (one for name, one in components.items() if name != ITSELF)
    for one in packages:
        bom.register_dependency(components[one.name], [components[name] for name in one.needs])
    return bom


def _component(one: Shipped, hashes: tuple[str, ...]) -> Component:
    purl = PackageURL("pypi", None, one.name, one.version)
    files = [HashTypeFactory().from_composite_str(text) for text in hashes]
    return Component(
        name=one.name,
        version=one.version,
        type=ComponentType.APPLICATION if one.name == ITSELF else ComponentType.LIBRARY,
        bom_ref=str(purl),
        purl=purl,
        licenses=[LicenseFactory().make_from_string(one.licence)] if one.licence else [],
        # One of these files is in the image, by platform.
        external_references=[
            ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=XsUri(str(purl)), hashes=files)
        ]
        if files
        else [],
    )


def text(bom: Bom) -> str:
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def main(target: Path) -> None:
    when = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", _NO_COMMIT)), UTC)
    bom = bill(shipped(), when)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text(bom), encoding="utf-8")
    sys.stdout.write(f"{target}: {len(bom.components)} packages besides {ITSELF}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
