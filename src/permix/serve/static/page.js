"use strict";
// Adds dropping of files and live progress; without it, plain forms and a page that reloads do the same.

const drop = document.querySelector("form.drop");
if (drop) {
  const input = drop.querySelector("input[type=file]");
  const wrong = drop.querySelector(".wrong");
  const fits = () => {
    const size = [...input.files].reduce((sum, file) => sum + file.size, 0);
    const most = Number(drop.dataset.limit);
    wrong.hidden = size <= most;
    wrong.textContent = size <= most ? "" : `This is more than the ${Math.round(most / 2 ** 20)} MiB that permix serve takes.`;
    return size <= most && input.files.length > 0;
  };
  const over = (event, on) => {
    event.preventDefault();
    drop.classList.toggle("over", on);
  };
  // Anywhere on the page: a file dropped beside the frame must not replace the page.
  document.addEventListener("dragover", (event) => over(event, true));
  document.addEventListener("dragleave", (event) => over(event, false));
  document.addEventListener("drop", (event) => {
    over(event, false);
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    if (fits()) drop.requestSubmit();
  });
  drop.addEventListener("submit", (event) => {
    if (!fits()) event.preventDefault();
  });
}

for (const form of document.querySelectorAll("form[data-ask]")) {
  form.addEventListener("submit", (event) => {
    if (!confirm(form.dataset.ask)) event.preventDefault();
  });
}

// A model that is not for what the file holds is not chosen.
const choose = document.querySelector("form.choose");
if (choose) {
  choose.addEventListener("change", (event) => {
    if (event.target.name !== "form") return;
    const chosen = choose.querySelector("input[name=model]:checked");
    const shown = [...choose.querySelectorAll("input[name=model]")].filter((input) => input.offsetParent);
    if (shown.length && !shown.includes(chosen)) shown[0].checked = true;
  });
}

const progress = document.querySelector("[data-status]");
if (progress) {
  const lines = progress.querySelector(".lines");
  const spoken = progress.querySelector("[role=status]");
  const words = progress.querySelector(".words");
  const said = progress.querySelector("h2");
  const took = progress.querySelector(".took");
  let heard = "";
  const part = (name, text) => {
    const span = document.createElement("span");
    span.className = name;
    span.textContent = text;
    return span;
  };
  const sentence = (text) => {
    const line = document.createElement("p");
    line.textContent = text;
    return line;
  };
  const row = (line) => {
    const item = document.createElement("li");
    const bar = document.createElement("progress");
    bar.setAttribute("aria-label", line.stage);
    if (line.of) {
      bar.max = line.of;
      bar.value = line.done;
    }
    item.append(part("stage", line.stage), bar, part("count", line.count), part("left", line.left), part("text", line.text));
    return item;
  };
  const look = async () => {
    try {
      const answer = await fetch(progress.dataset.status);
      if (!answer.ok) {
        location.reload(); // the page says why
        return;
      }
      const status = await answer.json();
      if (status.state !== progress.dataset.state && !(status.state === "running" && progress.dataset.state === "queued")) {
        location.reload();
        return;
      }
      said.textContent = status.said;
      if (took) took.textContent = status.took;
      lines.replaceChildren(...status.lines.map(row));
      words.replaceChildren(...status.words.map(sentence));
      // Screen readers hear of stages, not of every number.
      const now = [status.said, ...status.lines.map((line) => line.stage)].join(", ");
      if (now !== heard) spoken.textContent = heard = now;
    } catch {
      said.textContent = "permix serve does not answer; start it again, and the work goes on";
    }
    setTimeout(look, 1000);
  };
  look();
}
