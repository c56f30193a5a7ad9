"""What the lessons say of saved results is what these results show. A new result that says otherwise fails here."""

from benchmarks import claims, hosts
from benchmarks.claims.lesson_09 import c14_scaling_limit as c14
from benchmarks.experiment import runner


def test_lesson_09_how_many_workers_are_worth_having():
    found = c14.limits(runner.saved(claims.get("C14")).runs)
    small, small_fast, large, large_fast, bandwidth, messages = (found[case] for case in c14.CASES)
    assert large >= 1024, "'ResNet-50 on a processor like this one can use thousands of workers'"
    assert small <= c14.TENS, "'Our small network on the same processor is past one half with some tens'"
    assert small_fast < small and large_fast < large, "'A faster processor, the same links: fewer workers'"
    assert large > small, "'A network that computes more for each of its parameters: more workers'"
    assert messages > 10 * bandwidth, "'Faster messages: far more workers'"


def test_lesson_09_no_run_with_trouble_ends_outside_the_range_of_the_others():
    ends = {
        name: [run["epochs"][-1]["test_accuracy"] for run in hosts.read(name)] for name in (hosts.CALM, *hosts.TROUBLES)
    }
    calm = ends.pop(hosts.CALM)
    assert all(min(calm) <= accuracy <= max(calm) for runs in ends.values() for accuracy in runs)
