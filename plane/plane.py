"""A real Kubernetes control plane on loopback, for the tests and for people: etcd, kube-apiserver and kwok.

    python plane/plane.py build               compile it, and Helm for the tests of the chart, into the cache, once
    python plane/plane.py build --scheduler   compile kube-scheduler from the same modules instead
    python plane/plane.py start [--detach]    print the path of a kubeconfig, and run until Ctrl-C
    python plane/plane.py stop                stop a detached one

    from plane.plane import Plane
    with Plane() as plane: ...                plane.kubeconfig, plane.url, plane.token, plane.ca

No part of the product. Called by `make plane` and tests/live_support.py. It needs Linux and Python's own library; Go
comes from the Python package index where it is missing.
"""

import argparse
import contextlib
import signal
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    # Run as a file, Python looks for modules beside it, and would find this file as `plane`.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from plane.binary import HELM, KUBE_SCHEDULER, PLANE, PlaneError, build, cache_root
from plane.control import Plane

__all__ = ["Plane", "PlaneError", "build", "main"]


def main() -> None:
    arguments = _parser().parse_args()
    try:
        if arguments.command == "build":
            for program in (KUBE_SCHEDULER,) if arguments.scheduler else (PLANE, HELM):
                print(build(program))
        elif arguments.command == "start":
            _start(arguments)
        else:
            Plane.attach(arguments.dir).stop()
    except PlaneError as error:
        sys.exit(f"plane: {error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="plane", description="a real Kubernetes control plane on loopback")
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser(
        "build", help="compile it and Helm into the cache, unless they are there, and print where"
    )
    building.add_argument(
        "--scheduler", action="store_true", help="kube-scheduler from the same modules instead"
    )
    start = commands.add_parser("start", help="start it and print the path of its kubeconfig")
    start.add_argument("--detach", action="store_true", help="return and leave it running")
    start.add_argument("--owner", type=int, metavar="PID", help="detached: end it when this process is gone")
    start.add_argument("--port", type=int, default=0, help="of the API server; a free one if not given")
    start.add_argument("--no-kwok", action="store_true", help="nobody plays the nodes")
    stop = commands.add_parser("stop", help="stop a detached one")
    for command in (start, stop):
        command.add_argument("--dir", type=Path, default=cache_root() / "run", help="where its data are")
    return parser


def _start(arguments: argparse.Namespace) -> None:
    owner = arguments.owner if arguments.detach else 0
    plane = Plane(arguments.dir, kwok=not arguments.no_kwok, port=arguments.port, owner=owner)
    if arguments.detach:
        print(plane.start().kubeconfig)
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), plane:
        print(plane.kubeconfig, flush=True)
        print(f"export KUBECONFIG={plane.kubeconfig} to use it, Ctrl-C to stop it", file=sys.stderr)
        while plane.exists():
            plane.check()
            time.sleep(0.5)


if __name__ == "__main__":
    main()
