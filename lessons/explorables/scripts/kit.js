// The kit of all explorables: the shapes of the drawings, controls, and what happens when a reader uses a control.
//
// An explorable is an object `model` with
//   name, title, hint      its name, its heading, and one sentence that says what to try and what to look for
//   controls               a list of {id, label, min, max, step, value, says} or {id, label, options, value}
//   draw(state, data)      the content of the picture, as SVG text; it is 480 units wide
//   height                 the height of the picture in units
//   say(state, data)       a sentence about the picture, which a screen reader announces after each change
//   question               {text, answers, right, why}
// `state` has the value of each control by its id. `data` has the numbers that Python has computed.
"use strict";

const WIDTH = 480;

const escaped = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");
const round = (number) => Math.round(number * 10) / 10;
const look = (rank) => (rank < 4 ? `worker${rank}` : "computing"); // four workers have a colour of their own

const shapes = {
  text: (x, y, words, names = "ink", anchor = "middle") => {
    const size = names.includes("small") ? 13.5 : 15;
    const place = `x="${round(x)}" y="${round(y + 0.35 * size)}" text-anchor="${anchor}"`;
    return `<text ${place} class="${names}">${escaped(words)}</text>`;
  },
  box: (x, y, width, height, names, radius = 5) =>
    `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${radius}" class="${names}"/>`,
  waiting: (x, y, width, height) =>
    shapes.box(x, y, width, height, "paper") + shapes.box(x, y, width, height, "striped line-waiting"),
  worker: (x, y, rank, radius = 15) =>
    `<circle cx="${round(x)}" cy="${round(y)}" r="${radius}" class="fill-${look(rank)}"/>` +
    shapes.text(x, y, rank, `on-${look(rank)} bold`),
  dot: (x, y, radius, names) => `<circle cx="${round(x)}" cy="${round(y)}" r="${radius}" class="${names}"/>`,
  line: (points, names = "wire", width = 1.8) =>
    `<polyline points="${points.map((point) => point.map(round).join(",")).join(" ")}" class="${names}" stroke-width="${width}"/>`,
  arrow: (x0, y0, x1, y1, names = "wire", width = 1.8) => {
    const length = Math.hypot(x1 - x0, y1 - y0), size = 5 + width / 2;
    const dx = (size * (x1 - x0)) / length, dy = (size * (y1 - y0)) / length;
    const head = [[x1 - dx + 0.7 * dy, y1 - dy - 0.7 * dx], [x1, y1], [x1 - dx - 0.7 * dy, y1 - dy + 0.7 * dx]];
    return shapes.line([[x0, y0], [x1, y1]], names, width) + shapes.line(head, names, width);
  },
};

// Words for numbers, as the course writes them.
const words = {
  number: (value) => (value >= 1000 ? String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",") : String(Number(value.toPrecision(3)))),
  percent: (share) => `${Math.round(100 * share)} %`,
  seconds: (value) => {
    if (value >= 1) return `${words.number(value)} s`;
    return value >= 1e-3 ? `${words.number(value * 1e3)} ms` : `${words.number(value * 1e6)} µs`;
  },
  bytes: (value) => {
    if (value >= 1e9) return `${words.number(value / 1e9)} GB`;
    return value >= 1e6 ? `${words.number(value / 1e6)} MB` : `${words.number(value / 1e3)} kB`;
  },
};

const starting = (model) => Object.fromEntries(model.controls.map((control) => [control.id, control.value]));

// JupyterLab would take some arrow keys for itself. It leaves them to an element that has this attribute.
const ownKeys = "data-lm-suppress-shortcuts";

function controlMarkup(model, control) {
  const id = `${model.name}-${control.id}`;
  if (control.options) {
    const options = control.options.map(
      ([value, label]) => `<option value="${value}"${value === control.value ? " selected" : ""}>${escaped(label)}</option>`
    );
    return `<label for="${id}">${control.label}</label><select id="${id}" data-id="${control.id}" ${ownKeys}>${options.join("")}</select><output></output>`;
  }
  const range = `min="${control.min}" max="${control.max}" step="${control.step || 1}" value="${control.value}"`;
  const shown = escaped(control.says ? control.says(control.value, starting(model)) : control.value);
  return `<label for="${id}">${control.label}</label><input type="range" id="${id}" data-id="${control.id}" ${ownKeys} ${range}><output for="${id}">${shown}</output>`;
}

function questionMarkup(model) {
  const answers = model.question.answers.map(
    (answer, at) => `<label><input type="radio" name="${model.name}-answer" value="${at}" ${ownKeys}> ${escaped(answer)}</label>`
  );
  return `<fieldset class="question"><legend>${escaped(model.question.text)}</legend>${answers.join("")}<p class="answer" role="status"></p></fieldset>`;
}

const picture = (model, state, data) =>
  `<defs><pattern id="${model.name}-stripes" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
  `<line x1="0" y1="0" x2="0" y2="7" stroke-width="3" class="stripe"/></pattern></defs>` +
  model.draw(state, data).replace(/class="striped/g, `style="fill:url(#${model.name}-stripes)" class="striped`);

// The whole explorable as it is before a reader has touched it.
function markup(model, data) {
  const state = starting(model), said = model.say(state, data);
  const controls = model.controls.map((control) => controlMarkup(model, control)).join("");
  return (
    `<p class="title">${escaped(model.title)}</p>${questionMarkup(model)}<p class="hint">${escaped(model.hint)}</p>` +
    `<div class="controls">${controls}</div>` +
    `<svg viewBox="0 0 ${WIDTH} ${model.height}" role="img" aria-label="${escaped(said)}">${picture(model, state, data)}</svg>` +
    `<p class="said" role="status">${escaped(said)}</p>`
  );
}

// Let a reader use each copy of the explorable on the page.
function bringToLife(model, data) {
  for (const root of document.querySelectorAll(`.explorable[data-name="${model.name}"]:not([data-live])`)) {
    root.setAttribute("data-live", "");
    const state = starting(model), svg = root.querySelector("svg"), said = root.querySelector(".said");
    const answer = root.querySelector(".answer");
    const show = () => {
      for (const input of root.querySelectorAll(".controls [data-id]")) {
        const control = model.controls.find((one) => one.id === input.dataset.id);
        if (control.limits) [input.min, input.max] = control.limits(state);
        if (!control.options) state[control.id] = Number(input.value);
        const shown = control.options ? "" : control.says ? control.says(state[control.id], state) : state[control.id];
        input.nextElementSibling.textContent = shown;
        if (!control.options) input.setAttribute("aria-valuetext", shown);
      }
      svg.innerHTML = picture(model, state, data);
      const sentence = model.say(state, data);
      svg.setAttribute("aria-label", sentence);
      said.textContent = sentence;
    };
    root.addEventListener("input", (event) => {
      const id = event.target.dataset.id;
      if (id) {
        state[id] = event.target.tagName === "SELECT" ? event.target.value : Number(event.target.value);
        show();
      } else if (event.target.type === "radio") {
        const right = Number(event.target.value) === model.question.right;
        answer.textContent = right ? `Yes. ${model.question.why}` : "No. Play, and look again.";
        answer.className = right ? "answer right" : "answer";
      }
    });
    show();
  }
}
