"""Where the packages come from that Maniple is built with: the lock, what is shipped, licences, vulnerabilities.

No part of the product. `make lock`, `make sbom`, `make licences` and `make audit` run the modules of this folder.
"""
