"""Draws how fast others have trained ResNet-50 on ImageNet. Lesson 09 has the table with the sources."""

from lessons.cells.display.figures import axes, show

RECORDS = (  # who, processors, minutes
    ("one GPU", 1, 14 * 24 * 60), ("Goyal", 256, 60), ("Yang You", 2048, 20), ("Akiba", 1024, 15), ("Jia", 2048, 6.6),
    ("Ying", 1024, 2.2), ("Yamazaki", 2048, 74.7 / 60),
)  # fmt: skip


def show_records() -> None:
    """Draw the published times of six records, and of one GPU, against their processors."""
    _, processors, minutes = zip(*RECORDS, strict=True)
    figure, ax = axes("processors", "minutes to train")
    ax.loglog(processors, minutes, "o", linestyle="none", label="published")
    ax.loglog([1, 2048], [minutes[0], minutes[0] / 2048], "--", marker="", label="the GPU's time / processors")
    for name, x, y in RECORDS:
        ax.annotate(name, (x, y), (-6, 0), textcoords="offset points", ha="right", va="center", fontsize=8)
    ax.set_xlim(left=0.3)
    ax.legend()
    faster = f"{minutes[0] / minutes[-1]:,.0f} times as fast with {processors[-1]:,.0f} times as many processors"
    show(
        figure,
        "Published times of one GPU and of six records, beside the time of the GPU divided by the processors. "
        f"{faster}.",
        f"First to last: {faster}. The number of processors does not explain all of it. The rest comes from faster "
        "processors, half precision and software.",
    )
