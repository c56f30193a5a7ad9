// The ring all-reduce, step by step, with 2 to 8 workers.
const rule = {
  // The chunk that a worker sends in each half of the ring, and two mistakes. `step` counts from 0 in each half.
  right: { first: (rank, step) => rank - step, second: (rank, step) => rank + 1 - step },
  same: { first: (rank) => rank, second: (rank) => rank },
  backwards: { first: (rank, step) => rank + step, second: (rank, step) => rank + 1 + step },
};

const modulo = (number, size) => ((number % size) + size) % size;

// How often each worker's part is in each chunk: parts[worker][chunk][of], after `steps` steps; and what moved last.
function contributions(size, steps, chosen) {
  let parts = Array.from({ length: size }, (_, rank) =>
    Array.from({ length: size }, () => Array.from({ length: size }, (_, of) => (of === rank ? 1 : 0)))
  );
  let moved = [];
  for (let step = 0; step < steps; step++) {
    const adds = step < size - 1, half = adds ? step : step - (size - 1);
    const before = parts.map((chunks) => chunks.map((chunk) => [...chunk]));
    moved = [];
    for (let rank = 0; rank < size; rank++) {
      const chunk = modulo(rule[chosen][adds ? "first" : "second"](rank, half), size), to = (rank + 1) % size;
      const sent = before[rank][chunk];
      parts[to][chunk] = adds ? before[to][chunk].map((count, of) => count + sent[of]) : [...sent];
      moved.push([to, chunk]);
    }
  }
  return { parts, moved };
}

const complete = (parts) => parts.flat().filter((chunk) => chunk.every((count) => count === 1)).length;
const spoiled = (parts) => parts.flat().filter((chunk) => chunk.some((count) => count > 1)).length;

const model = {
  name: "ring",
  title: "The ring, step by step",
  hint: "Move the steps. A square is the part of one worker, in the colour of that worker. Then let the workers send the wrong chunk.",
  height: 344,
  controls: [
    { id: "size", label: "workers", min: 2, max: 8, value: 4 },
    { id: "step", label: "steps done", min: 0, max: 6, value: 0, limits: (state) => [0, 2 * (state.size - 1)],
      says: (step, state) => `${step} of ${2 * (state.size - 1)}` },
    { id: "chosen", label: "a worker sends", value: "right",
      options: [["right", "the chunk that it got last"], ["same", "the same chunk each time"], ["backwards", "the next chunk, not the last"]] },
  ],
  draw(state) {
    const { size, step, chosen } = state, { parts, moved } = contributions(size, Math.min(step, 2 * (size - 1)), chosen);
    const column = (WIDTH - 24) / size, row = 256 / size, cell = Math.min(column - 14, 96), drawn = [];
    drawn.push(shapes.text(2, 39, "chunk", "muted small", "start"));
    for (let chunk = 0; chunk < size; chunk++) drawn.push(shapes.text(9, 48 + chunk * row + (row - 6) / 2, chunk, "muted small"));
    for (let rank = 0; rank < size; rank++) {
      const middle = 12 + (rank + 0.5) * column;
      drawn.push(shapes.worker(middle, 22, rank));
      if (rank < size - 1) drawn.push(shapes.arrow(middle + 19, 22, middle + column - 19, 22));
      for (let chunk = 0; chunk < size; chunk++) {
        const y = 48 + chunk * row, fresh = moved.some(([to, number]) => to === rank && number === chunk);
        const full = parts[rank][chunk].every((count) => count === 1);
        drawn.push(shapes.box(middle - cell / 2, y, cell, row - 6, fresh ? "card line-gradient thick" : "card"));
        const side = Math.min((cell - 6) / size, row - 12), left = middle - (side * size) / 2, top = y + (row - 6 - side) / 2;
        parts[rank][chunk].forEach((count, of) => {
          if (!count) return;
          drawn.push(shapes.box(left + of * side + 1, top + 1, side - 2, side - 2, `fill-${look(of)}`, 2));
          if (side >= 12 && (count > 1 || of > 3))
            drawn.push(shapes.text(left + (of + 0.5) * side, top + side / 2, count > 1 ? `×${count}` : of, `on-${look(of)} small`));
        });
        if (full) drawn.push(shapes.line([[middle - cell / 2 + 4, y + row - 10], [middle + cell / 2 - 4, y + row - 10]], "line-gradient", 2));
      }
    }
    drawn.push(shapes.arrow(WIDTH - 16, 318, 16, 318), shapes.text(WIDTH / 2, 334, "the last worker sends to worker 0", "muted small"));
    return drawn.join("");
  },
  say(state) {
    const last = 2 * (state.size - 1), step = Math.min(state.step, last);
    const { parts } = contributions(state.size, step, state.chosen), all = state.size * state.size;
    const sent = words.number(step / state.size), done = `${complete(parts)} of ${all} chunks have one part of each worker`;
    const bad = spoiled(parts) ? `, and ${spoiled(parts)} have a part twice` : "";
    return `After ${step} of ${last} steps, ${done}${bad}. Each worker has sent ${sent} times the gradient's bytes.`;
  },
  question: {
    text: "With 8 workers, after how many steps do all workers have all chunks?",
    answers: ["7", "8", "14", "16"],
    right: 2,
    why: "Seven steps add up, and seven more pass the sums on. With K workers there are 2 (K − 1) steps.",
  },
};
