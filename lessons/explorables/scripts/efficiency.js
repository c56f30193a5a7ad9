// The share of their time in which 1 to 4,096 workers compute, for a network, a link and a batch of one's choice.
const FORWARD = 1 / 3; // of the computing, as in benchmarks/cost_models/cost_model.py

// The same as benchmarks.cost_models.cluster_model.update_seconds.
function updateSeconds(workers, images, imageSeconds, size, rate, latency, spread, overlaps) {
  const slowest = 1 + spread * Math.sqrt(2 * Math.log(workers));
  const compute = images * imageSeconds * slowest;
  if (workers === 1) return compute;
  const messages = 2 * (workers - 1), exchange = messages * latency + ((messages / workers) * size) / rate;
  if (!overlaps) return compute + exchange;
  return FORWARD * compute + Math.max((1 - FORWARD) * compute, exchange);
}

function efficiency(workers, state, data) {
  const network = data.networks[state.network], images = state.scaling === "weak" ? 2 ** state.power : 2 ** state.power / workers;
  const took = updateSeconds(workers, images, 1 / network.images_per_s, network.bytes, Number(state.link), Number(state.latency), Number(state.spread), state.exchange === "during");
  return (images / network.images_per_s) / took;
}

const COUNTS = Array.from({ length: 13 }, (_, power) => 2 ** power);

const model = {
  name: "efficiency",
  title: "How many workers are worth having?",
  hint: "Choose a network and a link. Then look where the line crosses one half.",
  height: 300,
  controls: [
    { id: "network", label: "network", value: "ResNet-50", options: [["Inception V3", "Inception V3, on a GPU of 2017"], ["ResNet-101", "ResNet-101, on a GPU of 2017"], ["VGG-16", "VGG-16, on a GPU of 2017"], ["ResNet-50", "ResNet-50, on a V100"]] },
    { id: "link", label: "link", value: "7.5e8", options: [["125e6", "1 Gbit/s"], ["7.5e8", "6 Gbit/s"], ["1.25e9", "10 Gbit/s"], ["3.125e9", "25 Gbit/s"], ["12.5e9", "100 Gbit/s"]] },
    { id: "latency", label: "time of a message", value: "4e-5", options: [["1e-5", "10 µs"], ["4e-5", "40 µs"], ["1e-3", "1 ms"]] },
    { id: "scaling", label: "batch", value: "weak", options: [["weak", "for each worker (weak scaling)"], ["strong", "for all together (strong scaling)"]] },
    { id: "power", label: "images in it", min: 3, max: 13, value: 6, says: (power) => 2 ** power },
    { id: "exchange", label: "exchange", value: "after", options: [["during", "overlaps with the backward pass"], ["after", "begins after the backward pass"]] },
    { id: "spread", label: "workers differ by", value: "0", options: [["0", "0 %"], ["0.02", "2 %"], ["0.1", "10 %"]] },
  ],
  draw(state, data) {
    const left = 56, right = WIDTH - 24, low = 246, high = 28, drawn = [];
    const x = (workers) => left + (Math.log2(workers) / 12) * (right - left), y = (share) => low - share * (low - high);
    for (const share of [0, 0.5, 1]) drawn.push(shapes.line([[left, y(share)], [right, y(share)]], "wire", 0.8), shapes.text(left - 8, y(share), words.percent(share), "ink small", "end"));
    for (const workers of [1, 4, 16, 64, 256, 1024, 4096]) drawn.push(shapes.text(x(workers), low + 18, workers, "ink small"));
    drawn.push(shapes.text((left + right) / 2, low + 40, "workers", "muted small"), shapes.text(left + 8, high - 8, "share of its time in which a worker computes", "muted small", "start"));
    const counts = COUNTS.filter((workers) => state.scaling === "weak" || workers <= 2 ** state.power);
    drawn.push(shapes.line(counts.map((workers) => [x(workers), y(efficiency(workers, state, data))]), "line-gradient", 3));
    counts.forEach((workers) => drawn.push(shapes.dot(x(workers), y(efficiency(workers, state, data)), 4, "tint-gradient")));
    return drawn.join("");
  },
  say(state, data) {
    const counts = COUNTS.filter((workers) => state.scaling === "weak" || workers <= 2 ** state.power);
    const largest = counts[counts.length - 1], every = Array.from({ length: largest }, (_, before) => before + 1);
    const most = every.findLast((workers) => efficiency(workers, state, data) >= 0.5);
    const eight = counts.includes(8) ? ` With 8 workers, it is ${words.percent(efficiency(8, state, data))}.` : "";
    return `Up to ${words.number(most)} workers compute for at least half of their time.${eight}`;
  },
  question: {
    text: "VGG-16, 64 images for each worker, workers that differ by 2 %, an exchange that overlaps: with which link do 64 workers compute for more than half of their time?",
    answers: ["only 25 Gbit/s and faster", "10 Gbit/s and faster", "1 Gbit/s and faster"],
    right: 0,
    why: "With 10 Gbit/s the exchange takes about three times as long as the backward pass, and most of it cannot be hidden.",
  },
};
