"""The drawings of the lessons. `make picture` writes each to solutions/drawings, under the name of its function."""

from lessons.drawings import course, exchange, large_networks, legend, machines, programs, timelines, training

DRAWINGS = (
    course.course_map, exchange.one_update, exchange.server_and_ring, exchange.three_steps, exchange.deadlock,
    machines.bandwidths, machines.memory, machines.elastic_run,
    large_networks.slow_link, large_networks.gather_and_scatter, large_networks.mesh,
    programs.one_step, programs.same_images, programs.what_the_grader_sees, programs.right_and_wrong,
    timelines.overlap, timelines.prefetching, timelines.pipeline, timelines.strong_and_weak,
    training.batch_norm, training.steps, training.warmup_and_decay, training.noise_ball, training.step_gain,
    legend.shapes,
)  # fmt: skip
