// Which worker uses which image, in each epoch, and three mistakes. All shards were computed by cifar.data.
const model = {
  name: "shards",
  title: "Who sees which image?",
  hint: "Change the epoch: the shards should change. Then choose a mistake, and look for images that two workers use.",
  height: 250,
  controls: [
    { id: "size", label: "workers", min: 1, max: 4, value: 4 },
    { id: "epoch", label: "epoch", min: 1, max: 3, value: 1 },
    { id: "way", label: "the program", value: "right",
      options: [["right", "as it should be"], ["no epoch", "the same shuffle in each epoch"], ["own seed", "each worker shuffles with its own seed"],
        ["rank 0", "every worker takes rank 0's shard"], ["padded", "the last shards are filled up"]] },
  ],
  draw(state, data) {
    const shards = data.shards[state.way][state.size - 1][state.epoch - 1], drawn = [];
    const columns = 9, side = 44, left = (WIDTH - columns * side) / 2;
    for (let image = 0; image < data.images; image++) {
      const owners = shards.flatMap((shard, rank) => shard.filter((one) => one === image).map(() => rank));
      const x = left + (image % columns) * side, y = 12 + Math.floor(image / columns) * 78;
      const names = owners.length === 1 ? `fill-worker${owners[0]}` : "card";
      drawn.push(shapes.box(x + 2, y, side - 4, side - 4, names));
      if (owners.length === 1) drawn.push(shapes.text(x + side / 2, y + side / 2 - 2, owners[0], `on-worker${owners[0]} bold`));
      else if (!owners.length) drawn.push(shapes.text(x + side / 2, y + side / 2 - 2, "–", "muted"));
      else owners.slice(0, 4).forEach((rank, at) => drawn.push(shapes.box(x + 5 + (at % 2) * 17, y + 3 + Math.floor(at / 2) * 17, 15, 15, `fill-worker${rank}`, 2)));
      drawn.push(shapes.text(x + side / 2, y + side + 6, image, "muted small"));
    }
    for (let rank = 0; rank < state.size; rank++) {
      drawn.push(shapes.worker(30 + rank * 112, 200, rank), shapes.text(52 + rank * 112, 200, `${shards[rank].length} images`, "ink", "start"));
    }
    drawn.push(shapes.text(12, 236, "Each square is an image, with its worker. A dash: no worker uses it.", "muted small", "start"));
    return drawn.join("");
  },
  say(state, data) {
    const shards = data.shards[state.way][state.size - 1][state.epoch - 1], used = shards.flat();
    const unused = data.images - new Set(used).size, twice = used.length - new Set(used).size;
    const same = state.epoch > 1 && JSON.stringify(shards) === JSON.stringify(data.shards[state.way][state.size - 1][0]);
    const repeated = twice ? `${twice} ${twice === 1 ? "use is" : "uses are"} a repetition` : "no image is used twice";
    return `Of ${data.images} images, ${unused} ${unused === 1 ? "is" : "are"} not used, and ${repeated}.` +
      (same ? " The shards are the same as in epoch 1." : "");
  },
  question: {
    text: "Four workers, and 18 images. Which program uses an image more than once in an epoch, but not by a mistake?",
    answers: ["as it should be", "the same shuffle in each epoch", "each worker shuffles with its own seed", "the last shards are filled up"],
    right: 3,
    why: "Filling up makes all shards equally long. The repeated images then count twice, also when test images are counted.",
  },
};
