// The weights of SGD in a valley: they walk to the bottom, and then move about it in a cloud, or they diverge.
const NOISE = 40; // the variance of one image's gradient
const UPDATES = 240;

// The standard deviation of the cloud in one direction of a valley (benchmarks/methods/sgd_noise.py); infinite if SGD diverges.
function spread(rate, batch, curvature) {
  const shrink = rate * curvature;
  return shrink >= 2 ? Infinity : Math.sqrt((rate * NOISE) / batch / (curvature * (2 - shrink)));
}

// Numbers that look random, the same in each browser: pairs of independent draws with mean 0 and variance 1.
function* draws(seed) {
  let state = seed;
  const uniform = () => (state = (state * 48271) % 2147483647) / 2147483647;
  for (;;) {
    const radius = Math.sqrt(-2 * Math.log(uniform())), angle = 2 * Math.PI * uniform();
    yield [radius * Math.cos(angle), radius * Math.sin(angle)];
  }
}

function path(rate, batch, curvature) {
  const noise = draws(20261), places = [[-2.6, 1.1]];
  for (let update = 0; update < UPDATES; update++) {
    const [x, y] = places[places.length - 1], [a, b] = noise.next().value, scale = Math.sqrt(NOISE / batch);
    places.push([x - rate * (x + a * scale), y - rate * (curvature * y + b * scale)]);
    if (Math.abs(places[places.length - 1][1]) > 100) break;
  }
  return places;
}

const RATES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8];

const model = {
  name: "cloud",
  title: "Where the noise lets the weights end",
  hint: "Double the rate and look at the cloud. Then double the batch. Then make the valley steeper.",
  height: 300,
  controls: [
    { id: "rate", label: "learning rate", min: 0, max: RATES.length - 1, value: 3, says: (at) => RATES[at] },
    { id: "power", label: "batch", min: 0, max: 10, value: 4, says: (power) => 2 ** power },
    { id: "curvature", label: "steepness across the valley", min: 1, max: 20, value: 4 },
  ],
  draw(state) {
    const scale = 70, middle = [WIDTH / 2, 140], rate = RATES[state.rate], drawn = [];
    for (const radius of [1, 2, 3]) {
      const across = radius * scale * 0.95, down = across / Math.sqrt(state.curvature);
      drawn.push(`<ellipse cx="${middle[0]}" cy="${middle[1]}" rx="${round(across)}" ry="${round(down)}" class="wire" opacity="0.5"/>`);
    }
    const inside = ([x, y]) => [Math.max(4, Math.min(WIDTH - 4, middle[0] + x * scale)), Math.max(4, Math.min(276, middle[1] + y * scale))];
    const places = path(rate, 2 ** state.power, state.curvature).map(inside), walk = Math.min(places.length - 1, Math.ceil(3 / rate));
    places.slice(walk).forEach(([x, y]) => drawn.push(shapes.dot(x, y, 2, "tint-gradient")));
    drawn.push(shapes.line(places.slice(0, walk + 1), "line-worker1", 2), shapes.dot(...places[0], 5, "tint-worker1"));
    drawn.push(shapes.text(12, 290, "Brown: the walk to the bottom. Purple: the updates after it.", "muted small", "start"));
    return drawn.join("");
  },
  say(state) {
    const rate = RATES[state.rate], along = spread(rate, 2 ** state.power, 1), across = spread(rate, 2 ** state.power, state.curvature);
    if (across === Infinity) return `With a rate of ${rate}, each step across the valley overshoots by more than it corrects: the weights diverge.`;
    return `With a rate of ${rate} and a batch of ${2 ** state.power}, the cloud is ${along.toFixed(2)} wide along the valley and ${across.toFixed(2)} across it.`;
  },
  question: {
    text: "The rate is four times as high. Which batch brings the old cloud back?",
    answers: ["the same batch", "a batch twice as large", "a batch four times as large", "a batch sixteen times as large"],
    right: 2,
    why: "For small rates, the cloud depends on the rate divided by the batch alone.",
  },
};
