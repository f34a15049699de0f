"""Pulls of images from a registry on loopback, and starts of pods from a large image that is here; for tools/bench."""

import random
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "images")]

import layout  # noqa: E402
from docker_registry import DockerRegistry  # noqa: E402

MIB = 1 << 20
# Parts of the unpacked bytes. One layer has most of them in the images that people train with.
SHARES = {"one large layer": (0.05, 0.1, 0.85), "eight equal layers": (0.125,) * 8}
LAYERS = 20
LARGE = "bench/large:1"


def program_like(size, seed):
    """Bytes that gzip makes some 2.5 times smaller, as it does programs."""
    source = random.Random(seed)
    words = [source.randbytes(source.randint(4, 24)) for _ in range(512)]
    block = bytearray()
    while len(block) < 4 * MIB:
        block += b"".join(source.choices(words, k=2000)) + source.randbytes(7000)
    # Further apart than gzip looks back.
    return (bytes(block) * (size // len(block) + 1))[:size]


def layer(size, seed, files=200):
    """A tar file of many small files and a few large ones."""
    folder, each = f"usr/lib/part-{seed}", size // 2 // files
    content = program_like(size, seed)
    small = {f"{folder}/small-{i}": content[i * each:(i + 1) * each] for i in range(files)}
    half = len(content) // 2
    large = {f"{folder}/large-{i}": content[half + i * half // 4:half + (i + 1) * half // 4] for i in range(4)}
    return layout.tar({**small, **large})


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def timed(*words):
    begin = time.monotonic()
    run(*words)
    return time.monotonic() - begin


def pod(name, image, command, out=None):
    container = {"name": "main", "image": image, "command": command}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    if out:
        container["volumeMounts"] = [{"name": "out", "mountPath": "/out"}]
        spec["volumes"] = [{"name": "out", "hostPath": {"path": str(out)}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def wait(condition, what, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise SystemExit(f"{what}: not within {seconds} s")


def gone(cluster, name):
    cluster.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    path = f"/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3D{name}"
    wait(lambda: not cluster.get(path)["items"], f"pod {name} goes")


def pull_seconds(cluster, image):
    """What the event of a pod says: from the pull's begin to an image that containers can use."""
    cluster.request("POST", "/api/v1/namespaces/default/pods", pod("pull", image, ["/bin/true"]))

    def said():
        for event in cluster.get("/api/v1/namespaces/default/events")["items"]:
            found = re.search(r"Successfully pulled image .* in ([0-9.]+)(ms|s) \(", event["message"])
            if found:
                return float(found[1]) / (1000 if found[2] == "ms" else 1)
            if event["reason"] == "Failed":
                raise SystemExit(event["message"])
        return None
    return wait(said, "the image")


def bench_pull(report, cluster_class, quick):
    if not shutil.which("docker-registry"):
        print("  (no docker-registry: pulls are not measured)", flush=True)
        return
    size, rounds = (200 * MIB, 3) if quick else (1000 * MIB, 5)
    for what, shares in SHARES.items():
        layers = [layout.base_layer()] + [layer(int(share * size), i) for i, share in enumerate(shares)]
        image = layout.Image(layers, level=6)
        with tempfile.TemporaryDirectory(prefix="swell-bench-") as folder:
            theirs, ours = pull_rounds(image, cluster_class, Path(folder), rounds)
        total = sum(one["size"] for one in image.layers)
        ratio = statistics.median(100 * their / our for their, our in zip(theirs, ours))
        report.add(f"pull from loopback, of the speed of curl and gunzip, {what}", ratio, "%", 70, True,
                   note=f"{size // MIB} MiB unpacked, {total // MIB} MiB packed; {statistics.median(theirs):.2f} s and "
                        f"{statistics.median(ours):.2f} s; median of {rounds}")


def pull_rounds(image, cluster_class, folder, rounds):
    """Seconds of curl of all layers and gunzip of the largest, and of pulls, in turn."""
    registry = DockerRegistry(folder / "registry")
    clusters, theirs, ours = [], [], []
    try:
        name = registry.push(image, "bench/image", "1")
        largest = max(image.layers, key=lambda one: one["size"])
        packed = folder / "largest.gz"
        packed.write_bytes(image.blobs[largest["digest"]])
        curl = ["curl", "-sS", "--parallel"]
        for i, one in enumerate(image.layers):
            url = f"http://{registry.address}/v2/bench/image/blobs/{one['digest']}"
            curl += ["-o", folder / f"layer-{i}", url]
        for _ in range(rounds):
            # A store of its own, kept until the end: where files were just deleted, ext4 makes new ones slowly.
            clusters.append(cluster_class("--nodes", "1"))
            theirs.append(timed(*curl) + timed("sh", "-c", f"gzip -dc {packed} >/dev/null"))
            ours.append(pull_seconds(clusters[-1], name))
    finally:
        for cluster in clusters:
            cluster.stop()
        registry.close()
    return theirs, ours


def write_large(directory, size):
    """An image of many layers, most of whose bytes are zeros: what is measured is starts, not its making."""
    layers = [layout.base_layer()]
    with tempfile.TemporaryFile() as file:
        for i in range(LAYERS - 1):
            file.seek(0)
            file.truncate()
            with tarfile.open(fileobj=file, mode="w") as archive:
                info = tarfile.TarInfo(f"opt/data-{i}")
                info.size = size // (LAYERS - 1)
                with open("/dev/zero", "rb") as zeros:
                    archive.addfile(info, zeros)
            file.seek(0)
            layers.append(file.read())
        layout.Image(layers).write(directory)


def bench_large_start(report, cluster_class, swell, quick):
    size, rounds = (500 * MIB, 10) if quick else (5000 * MIB, 50)
    with tempfile.TemporaryDirectory(prefix="swell-bench-") as folder:
        write_large(Path(folder) / "image", size)
        cluster = cluster_class("--nodes", "1")
        out = cluster.shared_folder("out")
        times = []
        try:
            run(swell, "images", "import", f"oci:{folder}/image", "--name", LARGE, "--data-dir", cluster.data)
            for i in range(rounds):
                begin = time.time()
                cluster.request("POST", "/api/v1/namespaces/default/pods",
                                pod(f"start-{i}", LARGE, ["/bin/touch", f"/out/{i}"], out))
                wait((out / str(i)).exists, f"start of pod start-{i}", 30)
                times.append(((out / str(i)).stat().st_mtime - begin) * 1e3)
                gone(cluster, f"start-{i}")
        finally:
            cluster.stop()
        report.add(f"start of a pod, image here: {size / 1e9:.1f} GB, {LAYERS} layers", statistics.median(times), "ms",
                   150, note=f"request sent to the container's first file; median of {rounds}, "
                             f"slowest {max(times):.0f} ms")


def run_all(report, cluster_class, swell, quick):
    bench_pull(report, cluster_class, quick)
    bench_large_start(report, cluster_class, swell, quick)
