"""Scaling that others have measured and published, and the constants that predict it. No constant was fitted to it."""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.cost_models.cluster_model import NETWORKS
from benchmarks.cost_models.clusters import Cluster, Training, efficiency
from benchmarks.cost_models.cost_model import FORWARD
from benchmarks.cost_models.hardware import GIGABIT

MILLION, MILLISECOND, MICROSECOND = 1e6, 1e-3, 1e-6


class Constant(NamedTuple):
    """A number of the model, and where it comes from."""

    name: str
    value: float
    unit: str
    source: str


NCCL = "NVIDIA/nccl, version 2.7.8, src/graph"
CONSTANTS = {
    "pcie": Constant("PCIe 3.0, 16 lanes", 12e9, "bytes/s", f"{NCCL}/topo.h, PCI_WIDTH"),
    "nvlink P100": Constant("4 NVLinks of a P100", 4 * 18e9, "bytes/s", f"{NCCL}/topo.h, PASCAL_NVLINK_WIDTH"),
    "nvlink V100": Constant("6 NVLinks of a V100", 6 * 21e9, "bytes/s", f"{NCCL}/topo.h, VOLTA_NVLINK_WIDTH"),
    "100g": Constant("100 Gbit/s InfiniBand", 12e9, "bytes/s", f"{NCCL}/topo.h, NET_WIDTH"),
    "4x100g": Constant("4 x 100 Gbit/s InfiniBand", 47e9, "bytes/s", "measured by NCCL's developer, NVIDIA/nccl#307"),
    "rdma": Constant("share of a link that RDMA reaches", 12 / 12.5, "", "the 12 GB/s of 100 Gbit/s above"),
    "tcp": Constant("share of a link that TCP reaches", 0.60, "", "measured at 32 Gbit/s, NVIDIA/nccl#209"),
    "inner latency": Constant("a step inside a host", 3.4 * MICROSECOND, "s", f"{NCCL}/tuning.cc, hwLat"),
    "rdma latency": Constant("a step between hosts, RDMA", 9.6 * MICROSECOND, "s", f"{NCCL}/tuning.cc, hwLat"),
    "tcp latency": Constant("a step between hosts, TCP", 40 * MICROSECOND, "s", "NVIDIA/nccl-tests#82"),
    "cycle 2017": Constant("Horovod's cycle in 2017", 5 * MILLISECOND, "s", "horovod@d54e3a8, mpi_ops.cc:1289"),
    "fusion": Constant("Horovod's fusion buffer", 64 * MILLION, "bytes", "horovod@d54e3a8, mpi_ops.cc:165"),
    "bucket": Constant("a bucket of PyTorch's DDP", 25 * MILLION, "bytes", "pytorch@bf69c14, benchmarks/distributed"),
    "spread": Constant("how far workers differ", 0.02, "", "Horovod's own jitter: horovod#466, horovod#693"),
}
WEIGHTS = {network.name: network.weights for network in NETWORKS} | {
    "ResNeXt-50": 25.0e6, "ResNeXt-101": 88.8e6, "BERT base": 110.1e6,
}  # fmt: skip


def value(name: str) -> float:
    """The value of a constant."""
    return CONSTANTS[name].value


class Measurement(NamedTuple):
    """A published efficiency (0 to 1) of a cluster, beside that of `reference`, or beside one device alone.

    `source` says where it was published, and `detail` what distinguishes it there.
    """

    source: str
    detail: str
    network: str
    cluster: Cluster
    training: Training
    efficiency: float
    reference: Cluster | None = None

    @property
    def predicted(self) -> float:
        """What the model predicts."""
        return efficiency(self.cluster, self.training, self.reference)

    @property
    def ratio(self) -> float:
        """The prediction divided by what was published."""
        return self.predicted / self.efficiency


def measurements() -> Iterator[Measurement]:
    """Yield all measurements."""
    yield from _horovod()
    yield from _goyal()
    yield from _ddp()
    yield from _dlperf()


def _pascal(hosts: int, gigabits: float, way: str) -> Cluster:
    """Horovod's own hosts: four GPUs each on PCIe, and one network card."""
    rate = gigabits * GIGABIT * value(way)
    return Cluster(hosts, 4, value("pcie"), value("inner latency"), rate, value(f"{way} latency"))


def _horovod() -> Iterator[Measurement]:
    """Horovod's README of September 2017 and its documentation of 2017 and 2018, batch 64 for each GPU."""
    names = ("Inception V3", "ResNet-101", "VGG-16")
    slow, fast = (134.4, 119.4, 130.9), (148.8, 136.0, 149.6)  # images/s of one GPU, in the two clusters
    series = (
        ("25 Gbit/s, RDMA", _pascal(4, 25, "rdma"), slow, (2022.6, 1746.2, 1787.4)),
        ("25 Gbit/s, TCP", _pascal(4, 25, "tcp"), slow, (1990.7, 1685.1, 1308.7)),
        ("40 Gbit/s, TCP", _pascal(16, 40, "tcp"), fast, (7932.1, 7741.6, 6084.2)),
        ("25 Gbit/s, RDMA", _pascal(32, 25, "rdma"), slow, (0.90, 0.90, 0.79)),
        ("25 Gbit/s, RDMA", _pascal(128, 25, "rdma"), slow, (0.90, 0.90, 0.68)),
    )
    for link, cluster, alone, found in series:
        for name, images_per_s, speed in zip(names, alone, found, strict=True):
            reached = speed / (cluster.workers * images_per_s) if speed > 1 else speed
            training = Training(64 / images_per_s, WEIGHTS[name], value("fusion"), value("cycle 2017") / 2)
            yield Measurement("horovod", link, name, cluster, training, reached)


def _goyal() -> Iterator[Measurement]:
    """Goyal and others 2017: ResNet-50, 32 images for each P100, beside 8 of them in one host."""
    backward = 0.120  # seconds, section 4.3
    training = Training(backward / (1 - FORWARD), 25e6, value("bucket"))
    rate = 50 * GIGABIT * value("rdma")
    for hosts, section, reached in ((32, "abstract", 0.90), (44, "section 5.5", 1 / 1.12)):
        inner = value("nvlink P100"), value("inner latency")
        cluster = Cluster(hosts, 8, *inner, rate, value("rdma latency"), "tree")
        yield Measurement("goyal", section, "ResNet-50", cluster, training, reached, cluster._replace(hosts=1))


def _v100(hosts: int, link: str) -> Cluster:
    """Hosts of eight V100 each."""
    inner = value("nvlink V100"), value("inner latency")
    return Cluster(hosts, 8, *inner, value(link), value("rdma latency"))


def _ddp() -> Iterator[Measurement]:
    """PyTorch's benchmark of DDP: 32 images for each V100, two hosts, the median seconds of an update."""
    found = (
        ("ResNet-50", 0.097, 0.104), ("ResNet-101", 0.162, 0.179), ("ResNeXt-50", 0.145, 0.157),
        ("ResNeXt-101", 0.415, 0.450),
    )  # fmt: skip
    for name, alone, together in found:
        training = Training(alone, WEIGHTS[name], value("bucket"))
        yield Measurement("ddp", "batch 32", name, _v100(2, "4x100g"), training, alone / together)


def _dlperf() -> Iterator[Measurement]:
    """The report of DLPerf, October 2020: 32-bit arithmetic, 8 V100 in each host, one network card."""
    horovod, ddp = (value("fusion"), value("cycle 2017") / 2), (value("bucket"), 0.0)
    whole = (1e9, 0.0)  # apex is told to exchange all gradients at once, after the backward pass
    found = (
        ("OneFlow", "ResNet-50", 128, ddp, (397.64, 6260.30, 12411.97)),
        ("MXNet of NVIDIA", "ResNet-50", 128, horovod, (392.24, 5758.49, 11331.93)),
        ("TensorFlow of NVIDIA", "ResNet-50", 128, horovod, (362.44, 5099.42, 9514.64)),
        ("apex of NVIDIA", "ResNet-50", 128, ddp, (367.29, 5716.79, 10917.09)),
        ("MXNet", "ResNet-50", 128, horovod, (384.19, 4855.34, 9579.74)),
        ("PyTorch", "ResNet-50", 128, ddp, (348.62, 5115.40, 10021.29)),
        ("TensorFlow of NVIDIA", "BERT base", 32, horovod, (107.33, 1404.04, 2727.90)),
        ("apex of NVIDIA", "BERT base", 32, whole, (119.60, 1499.40, 2885.81)),
        ("MXNet", "BERT base", 32, horovod, (150.11, 1845.65, 3671.45)),
        ("OneFlow", "BERT base", 32, ddp, (153.94, 2181.51, 4019.45)),
        ("TensorFlow of NVIDIA", "BERT base", 48, horovod, (112.76, 1576.88, 3089.74)),
        ("apex of NVIDIA", "BERT base", 48, whole, (121.94, 1584.32, 3039.30)),
        ("MXNet", "BERT base", 64, horovod, (156.76, 2172.62, 4340.89)),
        ("OneFlow", "BERT base", 96, ddp, (156.02, 2352.92, 4664.10)),
    )
    for library, name, batch, (bucket, start), (alone, *together) in found:
        for hosts, speed in zip((2, 4), together, strict=True):
            cluster = _v100(hosts, "100g")
            training = Training(batch / alone, WEIGHTS[name], bucket, start, overlaps=bucket < 1e9)
            detail, reached = f"{library}, batch {batch}", speed / (cluster.workers * alone)
            yield Measurement("dlperf", detail, name, cluster, training, reached)


# Where each series was published, what ran, and why the model misses where it misses most.
SOURCES = {
    "horovod": (
        "Horovod 2017 and 2018",
        "horovod/horovod: README.md at commit d54e3a8 (16 and 64 GPUs), docs/benchmarks.md at 8318a89 (128 and 512)",
        "TensorFlow, 64 images for each GPU, four Pascal GPUs in a host.",
        "VGG-16 has three quarters of its weights in one layer, whose gradient is exchanged as one piece. The model "
        "exchanges equal pieces, so it foresees less waiting.",
    ),
    "goyal": (
        "Goyal and others 2017",
        "arXiv:1706.02677, section 4.3 for the hardware, section 5.5 and the abstract for the efficiencies",
        "Caffe2 with Gloo, 32 images for each GPU, eight P100 in a host, beside one such host. The link has 50 Gbit/s.",
        "",
    ),
    "ddp": (
        "PyTorch 2019",
        "pytorch/pytorch: benchmarks/distributed/ddp/README.md at commit bf69c14",
        "DDP, eight V100 in a host, two hosts, four cards of 100 Gbit/s in each.",
        "DDP copies gradients into its buckets. On one GPU this already takes 3 to 6 %, and the model knows nothing "
        "of it.",
    ),
    "dlperf": (
        "DLPerf 2020",
        "Oneflow-Inc/DLPerf: reports/dlperf_benchmark_test_report_v1.md at commit c89430b",
        "32-bit arithmetic, eight V100 in a host, one card of 100 Gbit/s. MXNet and TensorFlow exchange with Horovod.",
        "MXNet loses 17 % with ResNet-50, and 12 % with BERT, before any byte leaves a host: eight GPUs of one host "
        "reach 83 and 88 %. The model does not know how the input is read. BERT's table of words is a fifth of its "
        "weights, and its gradient is ready last. So its exchange cannot be hidden, whereas the model spreads all "
        "weights evenly over the backward pass.",
    ),
}
