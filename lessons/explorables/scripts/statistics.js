// Batch norm's mean and standard deviation over the batch of each of four workers, beside those of all their images.
function moments(values) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return { mean, deviation: Math.sqrt(variance) };
}

const batches = (data, each) => [0, 1, 2, 3].map((rank) => data.values.slice(rank * each, (rank + 1) * each));

const model = {
  name: "statistics",
  title: "Over how many images does batch norm take its mean?",
  hint: "Make the batch of each worker smaller, and look how far apart the largest and the smallest of the four means are.",
  height: 300,
  controls: [
    { id: "power", label: "images per worker", min: 0, max: 5, value: 4, says: (power) => 2 ** power },
    { id: "draw", label: "another draw", min: 0, max: 5, value: 0, says: (draw) => draw + 1 },
  ],
  draw(state, data) {
    const each = 2 ** state.power, values = data.draws[state.draw], drawn = [];
    const x = (value) => 60 + ((value + 3.5) / 7) * (WIDTH - 80), own = batches({ values }, each);
    const all = moments(own.flat());
    for (let rank = 0; rank < 4; rank++) {
      const y = 34 + rank * 52, found = moments(own[rank]);
      drawn.push(shapes.worker(28, y, rank), shapes.line([[60, y], [WIDTH - 20, y]], "wire", 0.7));
      own[rank].forEach((value) => drawn.push(shapes.dot(x(value), y, 3.5, `tint-worker${rank}`)));
      drawn.push(shapes.line([[x(found.mean - found.deviation), y + 14], [x(found.mean + found.deviation), y + 14]], `line-worker${rank}`, 4));
      drawn.push(shapes.line([[x(found.mean), y + 6], [x(found.mean), y + 22]], `line-worker${rank}`, 4));
    }
    const y = 246;
    drawn.push(shapes.text(28, y, "all", "ink"), shapes.line([[x(all.mean - all.deviation), y], [x(all.mean + all.deviation), y]], "line-gradient", 4));
    drawn.push(shapes.line([[x(all.mean), y - 8], [x(all.mean), y + 8]], "line-gradient", 4));
    drawn.push(shapes.text(12, 282, "Dots: images. Bar: the mean, and one standard deviation each way.", "muted small", "start"));
    return drawn.join("");
  },
  say(state, data) {
    const own = batches({ values: data.draws[state.draw] }, 2 ** state.power), means = own.map((values) => moments(values).mean);
    const apart = Math.max(...means) - Math.min(...means), deviations = own.map((values) => moments(values).deviation);
    const mean = deviations.reduce((sum, one) => sum + one, 0) / 4;
    return `With ${2 ** state.power} images per worker, the largest and the smallest of the four means are ${apart.toFixed(2)} apart. ` +
      `The mean of the four standard deviations is ${mean.toFixed(2)}, and that of all images is ${moments(own.flat()).deviation.toFixed(2)}.`;
  },
  question: {
    text: "One image per worker, one number per image: what does each worker's batch norm give for it?",
    answers: ["the number itself", "0, whatever the number was", "1, whatever the number was"],
    right: 1,
    why: "The mean of one number is the number itself. The difference is 0, and nothing of the image is left.",
  },
};
