// One update as a lane of time: forward, backward, and exchanges that begin when their gradients are ready.
const FORWARD = 1 / 3; // of the computing, as in benchmarks/cost_models/cost_model.py

// The begin and the end of each exchange. One begins when its gradients are ready and the exchange before has ended.
function exchanges(forward, backward, whole, start, buckets) {
  const found = [];
  let free = 0;
  for (let number = 1; number <= buckets; number++) {
    const begin = Math.max(free, forward + (backward * number) / buckets);
    free = begin + start + whole / buckets;
    found.push([begin, free]);
  }
  return found;
}

const model = {
  name: "timeline",
  title: "One update, and what overlap can hide",
  hint: "Cut the gradients into more buckets. At first the update gets shorter. Find the number from which it gets longer.",
  height: 232,
  controls: [
    { id: "compute", label: "computing", min: 5, max: 200, step: 5, value: 60, says: (value) => `${value} ms` },
    { id: "bytes", label: "gradient", min: 2, max: 500, step: 2, value: 18, says: (value) => `${value} MB` },
    { id: "link", label: "link", value: "10", options: [["1", "1 Gbit/s"], ["10", "10 Gbit/s"], ["25", "25 Gbit/s"], ["100", "100 Gbit/s"]] },
    { id: "start", label: "cost of each exchange", value: "1", options: [["0", "0 ms"], ["0.1", "0.1 ms"], ["1", "1 ms"], ["5", "5 ms"]] },
    { id: "buckets", label: "buckets", min: 1, max: 32, value: 6 },
  ],
  // All times in milliseconds. The bytes go through the link twice, as in a ring of many workers.
  times(state) {
    const forward = FORWARD * state.compute, backward = (1 - FORWARD) * state.compute;
    const whole = (2 * state.bytes * 8) / Number(state.link), start = Number(state.start);
    const found = exchanges(forward, backward, whole, start, state.buckets);
    return { forward, backward, whole, found, end: found[found.length - 1][1], apart: forward + backward + start + whole, bound: forward + Math.max(backward, whole) };
  },
  draw(state) {
    const { forward, backward, whole, found, end, apart } = this.times(state), scale = (WIDTH - 24) / Math.max(end, apart), drawn = [];
    const x = (time) => 12 + time * scale;
    const lane = (y, name, sent, last) => {
      drawn.push(shapes.text(12, y, name, "ink", "start"), shapes.text(WIDTH - 12, y, `${words.number(last)} ms`, "ink bold", "end"));
      for (const [begin, length, words_] of [[0, forward, "forward"], [forward, backward, "backward"]]) {
        drawn.push(shapes.box(x(begin), y + 14, length * scale, 26, "fill-computing", 3));
        if (length * scale > 66) drawn.push(shapes.text(x(begin + length / 2), y + 27, words_, "on-computing small"));
      }
      for (const [begin, stop] of sent) drawn.push(shapes.box(x(begin), y + 44, Math.max((stop - begin) * scale - 1, 0.8), 22, "fill-gradient", 2));
    };
    lane(18, "One exchange at the end", [[forward + backward, apart]], apart);
    lane(116, `${state.buckets} ${state.buckets === 1 ? "bucket" : "buckets"}, each sent when it is ready`, found, end);
    drawn.push(shapes.text(12, 212, "Grey: computing. Purple: exchanging.", "muted small", "start"));
    return drawn.join("");
  },
  say(state) {
    const { end, apart, bound } = this.times(state);
    const change = 1 - end / apart, how = change >= 0 ? `${words.percent(change)} less` : `${words.percent(-change)} more`;
    return `The update takes ${words.number(end)} ms, ${how} than with one exchange at the end. It can never take less than ${words.number(bound)} ms.`;
  },
  question: {
    text: "Leave the other dials as they are. With which number of buckets is the update shortest?",
    answers: ["1", "4", "10", "32"],
    right: 2,
    why: "More buckets leave a smaller last one, but each costs 1 ms. Beyond about eleven, the exchange takes longer than the backward pass.",
  },
};
