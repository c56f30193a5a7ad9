// The bytes on each link, and the seconds of an exchange: one server, as many servers as workers, and a ring.
const ways = {
  // `bytes` is what the busiest link carries, in both directions together, and `messages` follow each other.
  "one server": (workers, size) => ({ bytes: 2 * workers * size, messages: 2 }),
  "a server per worker": (workers, size) => ({ bytes: 2 * size, messages: 2 }),
  "a ring": (workers, size) => ({ bytes: (2 * (workers - 1) / workers) * size, messages: 2 * (workers - 1) }),
};

const seconds = (way, workers, size, rate, latency) => {
  const found = ways[way](workers, size);
  return found.messages * latency + found.bytes / rate;
};

const model = {
  name: "server",
  title: "A server, or a ring?",
  hint: "Add workers and look at the longest bar. Then make the link fast and each message slow.",
  height: 262,
  controls: [
    { id: "workers", label: "workers", min: 2, max: 64, value: 4 },
    { id: "network", label: "gradient", value: "1.9e6",
      options: [["1.9e6", "1.9 MB (the lessons' network)"], ["102e6", "102 MB (ResNet-50)"], ["553e6", "553 MB (VGG-16)"]] },
    { id: "link", label: "link", value: "12.5e6",
      options: [["12.5e6", "100 Mbit/s"], ["125e6", "1 Gbit/s"], ["1.25e9", "10 Gbit/s"], ["12.5e9", "100 Gbit/s"]] },
    { id: "latency", label: "time of a message", value: "1e-4", options: [["1e-5", "10 µs"], ["1e-4", "0.1 ms"], ["1e-3", "1 ms"]] },
  ],
  times: (state) => Object.keys(ways).map((way) => seconds(way, state.workers, Number(state.network), Number(state.link), Number(state.latency))),
  draw(state) {
    const times = this.times(state), longest = Math.max(...times), drawn = [];
    Object.keys(ways).forEach((way, at) => {
      const y = 12 + at * 74, { bytes, messages } = ways[way](state.workers, Number(state.network));
      drawn.push(shapes.text(12, y + 8, way, "ink bold", "start"), shapes.text(WIDTH - 12, y + 8, words.seconds(times[at]), "ink bold", "end"));
      const waited = messages * Number(state.latency), scale = (WIDTH - 24) / longest;
      drawn.push(shapes.waiting(12, y + 22, Math.max(waited * scale, 0.5), 22));
      drawn.push(shapes.box(12 + waited * scale, y + 22, Math.max((times[at] - waited) * scale, 0.5), 22, "fill-gradient", 0));
      drawn.push(shapes.text(12, y + 56, `busiest link ${words.bytes(bytes)}, ${messages} messages in a row`, "muted small", "start"));
    });
    drawn.push(shapes.text(12, 244, "Stripes: messages on their way. Purple: bytes.", "muted small", "start"));
    return drawn.join("");
  },
  say(state) {
    const times = this.times(state), best = Object.keys(ways)[times.indexOf(Math.min(...times))];
    return `With ${state.workers} workers, an exchange takes ${words.seconds(times[0])} with one server and ${words.seconds(times[2])} in a ring. ` +
      `The fastest way is ${best}.`;
  },
  question: {
    text: "8 workers, the lessons' network, a link of 100 Gbit/s, and 1 ms for a message: which is slower?",
    answers: ["one server", "the ring", "both take the same time"],
    right: 1,
    why: "The bytes take no time here. The ring sends 14 messages one after the other, and the server only 2.",
  },
};
