"""Top-k sends what it says and loses nothing, and the bytes of PowerSGD are those that PyTorch counts."""

import torch

from benchmarks.instruments.gloo_processes import on_peers
from benchmarks.methods import compression
from benchmarks.speed import loop


def test_top_k_sends_the_largest_values_and_keeps_the_others_for_the_next_update():
    workers = [compression.TopK(lambda tensor, name: tensor[None], share=0.25) for _ in range(2)]
    gradients = torch.tensor([[1.0, -8.0, 2.0, 0.5], [3.0, 1.0, -2.0, 0.0]])
    sent = [worker.mean(gradient) for worker, gradient in zip(workers, gradients, strict=True)]
    assert [one.tolist() for one in sent] == [[0, -8, 0, 0], [3, 0, 0, 0]]
    assert [worker.rest.tolist() for worker in workers] == [[1, 0, 2, 0.5], [0, 1, -2, 0]]
    assert workers[0].mean(torch.tensor([1.5, 0, 0, 0])).tolist() == [2.5, 0, 0, 0]


def test_top_k_averages_over_the_workers_also_where_only_one_sends():
    def gather(tensor: torch.Tensor, name: str) -> torch.Tensor:
        others = {"places": torch.tensor([1], dtype=torch.int32), "values": torch.tensor([4.0])}
        return torch.stack([tensor, others[name]])

    mean = compression.TopK(gather, share=0.25).mean(torch.tensor([0.0, 0, 6, 1]))
    assert mean.tolist() == [0, 2, 3, 0]


def test_all_values_are_sent_in_the_end():
    torch.manual_seed(0)
    worker, total = compression.TopK(lambda tensor, name: tensor[None], share=0.1), torch.zeros(50)
    gradients = torch.randn(30, 50)
    for gradient in gradients:
        total += worker.mean(gradient)
    torch.testing.assert_close(total + worker.rest, gradients.sum(0))


def test_the_bytes_of_power_sgd_are_those_that_pytorch_counts():
    counted = on_peers("tests.benchmarks.methods.test_compression:power_sgd_values", 2)
    assert [compression.VALUE * values for values in counted] == 2 * [
        compression.power_sgd_bytes(loop.gradient_shapes("resnet9"))
    ]


def power_sgd_values() -> int:
    """Runs on a process. Returns the values that PyTorch's PowerSGD sends of the gradient of ResNet-9."""
    from benchmarks.speed import exchange_ways

    wrapped, state = exchange_ways.power_sgd_network(loop.build("resnet9"))
    for _ in range(compression.FIRST_COMPRESSED + 1):
        wrapped(torch.randn(4, 3, 32, 32)).sum().backward()
    return state.compression_stats()[2]
