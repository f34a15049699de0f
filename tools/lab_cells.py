#!/usr/bin/env python3
"""Writes src/lab/model/pollux_cells.cc: how Qhull triangulates the places of Pollux' step times.

    tools/lab_cells.py PROFILES

PROFILES has a folder for each application with placements-aws.csv and scalability-aws.csv. Needs SciPy, whose Delaunay
triangulation the published simulator uses. Only tetrahedra in which a job on 5 to 16 nodes can lie are written: all
placements on fewer nodes were measured.
"""

import csv
import sys
from pathlib import Path

import numpy
from scipy.spatial import Delaunay

APPLICATIONS = {"bert": (384, 12), "cifar10": (4096, 1024), "deepspeech2": (640, 80), "imagenet": (12800, 200),
                "yolov3": (512, 8)}  # largest batch, largest batch of a GPU
WIDTH = 1000


def points_of(folder):
    """The places in the order in which the published simulator gives them to Qhull."""
    with open(folder / "placements-aws.csv", encoding="utf-8") as f:
        grouped = sorted({(len(r["placement"]), sum(map(int, r["placement"])), int(r["local_bsz"]))
                          for r in csv.DictReader(f)})
    with open(folder / "scalability-aws.csv", encoding="utf-8") as f:
        return grouped + [(int(r["num_nodes"]), int(r["num_replicas"]), int(r["local_bsz"])) for r in csv.DictReader(f)]


def contains(triangulation, cells, place):
    """The cells that hold the place, and the weights of their corners there."""
    transform = triangulation.transform[cells]
    first = numpy.einsum("nij,nj->ni", transform[:, :3, :], numpy.array(place) - transform[:, 3, :])
    weights = numpy.c_[first, 1 - first.sum(1)]
    inside = numpy.where((weights >= -1e-9).all(1))[0]
    return inside, weights[inside]


def in_order(count, before):
    """The numbers below `count`, a before b for each pair (a, b) where that can be; the rarest pairs give way."""
    waits = [{} for _ in range(count)]
    for (a, b), weight in before.items():
        waits[b][a] = weight
    order, left = [], set(range(count))
    while left:
        best = min(left, key=lambda c: (sum(waits[c].values()), c))
        left.remove(best)
        order.append(best)
        for wait in waits:
            wait.pop(best, None)
    return order


def cells_of(points, batch_max, local_max):
    """The tetrahedra that hold a place where a job can be, by the numbers of their corners, and exceptions.

    Qhull's tetrahedra overlap here and there, where many points lie on one sphere. SciPy takes the one that its walk
    meets. The first in the list that holds a place is that one, except at the places that are returned, too.
    """
    triangulation = Delaunay(numpy.array(points, dtype=float))
    local_min = min(p[2] for p in points)
    places = [(n, g, b) for n in range(5, 17) for g in range(n, 4 * n + 1) for b in range(local_min, local_max + 1)
              if g * b <= batch_max]
    chosen = [int(triangulation.find_simplex(numpy.array([place], dtype=float))[0]) for place in places]
    cells = sorted(set(chosen))
    corners = triangulation.simplices[cells]
    mark = numpy.random.default_rng(1).random(len(points))  # a value for each point: equal sums mean equal cells
    disputes, before = [], {}
    for place, simplex in zip(places, chosen):
        inside, weights = contains(triangulation, cells, place)
        values = dict(zip(map(int, inside), (weights * mark[corners[inside]]).sum(1)))
        right = cells.index(simplex)
        others = [c for c, value in values.items() if abs(value - values[right]) > 1e-6]
        if others:
            disputes.append((place, right, others))
        for other in others:
            before[right, other] = before.get((right, other), 0) + 1
    order = in_order(len(cells), before)
    rank = {cell: i for i, cell in enumerate(order)}
    exceptions = [(place, rank[right]) for place, right, others in disputes
                  if min(rank[other] for other in others) < rank[right]]
    return [tuple(map(int, corners[c])) for c in order], exceptions


def with_cells(source, lines):
    """The C++ file with these lines as its table; `./dev fmt` lays them out."""
    return source[:source.index('R"(')] + lines.strip() + source[source.rindex(')",') + 3:]


def main(profiles):
    out = Path(__file__).resolve().parent.parent / "src/lab/model/pollux_cells.cc"
    lines = []
    for application, (batch_max, local_max) in APPLICATIONS.items():
        points = points_of(Path(profiles) / application)
        cells, exceptions = cells_of(points, batch_max, local_max)
        used = sorted({corner for cell in cells for corner in cell})
        number = {old: new for new, old in enumerate(used)}
        text = application + ":" + " ".join(".".join(map(str, points[i])) for i in used) + ":"
        text += " ".join(".".join(str(number[c]) for c in cell) for cell in cells) + ":"
        text += " ".join(".".join(map(str, (*place, cell))) for place, cell in exceptions)
        pieces = [text[i:i + WIDTH] for i in range(0, len(text), WIDTH)]
        lines.append("\n".join(f'    R"({piece})"' for piece in pieces) + ",\n")
    out.write_text(with_cells(out.read_text(encoding="utf-8"), "".join(lines)), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
