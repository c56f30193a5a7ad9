"""What the cells of a notebook call: launches of workers, saved and live experiments, figures, hosts."""
