"""The drawings of the lessons. `make picture` writes each to solutions/drawings, under the name of its function."""

from lessons.drawings import course, exchange, legend, machines, timelines, training

DRAWINGS = (
    course.course_map, exchange.one_update, exchange.server_and_ring, exchange.deadlock, machines.bandwidths,
    machines.memory, timelines.overlap, timelines.pipeline, timelines.strong_and_weak, training.batch_norm,
    training.steps, training.warmup_and_decay, training.noise_ball, legend.shapes,
)  # fmt: skip
