
  /* Labelling with keys, for reports and for `undrift label`. */
  const Z = 1.959963984540054;
  const percent = (share) => `${(100 * share).toFixed(1)}%`;
  const points = (share) => (100 * share).toFixed(1).replace("-", "\u2212");
  const plural = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
  const isNumber = (label) => /^-?[\d.,]+$/.test(label);
  const nameClass = (label) => isNumber(label) ? `\`${label}\`` : label;

  /* Show a sentence; numbers in backticks are class names, shown as code. */
  const say = (element, sentence) => {
    const parts = sentence.split(/`(-?[\d.,]+)`/);
    element.replaceChildren(...parts.map((part, i) => i % 2 ? make("code", {}, part) : part));
  };

  /* Wilson's interval of a share that was measured on n rows; n need not be whole. */
  const wilson = (p, n) => {
    const middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n);
    const half = Z / (1 + Z * Z / n) * Math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n));
    return [Math.max(0, middle - half), Math.min(1, middle + half)];
  };

  /* An error with its interval, drawn as reports draw it. */
  const drawError = (host, name, { error, low, high }) => {
    host.innerHTML = "<svg></svg>";
    const space = host.firstChild.namespaceURI;
    const part = (tag, attributes, ...children) => {
      const element = document.createElementNS(space, tag);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      element.append(...children);
      return element;
    };
    const step = [0.01, 0.02, 0.05, 0.1, 0.2].find((size) => high / size <= 6) || 0.2;
    const end = Math.min(1, Math.max(high * 1.05, step)), place = (share) => 12 + 366 * share / end;
    const says = `${name}: ${percent(error)} (${percent(low)} to ${percent(high)})`;
    const parts = [part("text", { x: 12, y: 17 }, says), part("line", { x1: 12, y1: 44, x2: 378, y2: 44, class: "zero" })];
    for (let share = 0; share <= end + 1e-9; share += step) {
      parts.push(part("line", { x1: place(share), y1: 44, x2: place(share), y2: 49, class: "grid" }));
      parts.push(part("text", { x: place(share), y: 67, "text-anchor": "middle", class: "tick" }, `${Math.round(100 * share)}%`));
    }
    parts.push(part("line", { x1: place(low), y1: 30, x2: place(high), y2: 30, class: "whisker ink-line" }));
    parts.push(part("rect", { x: place(error) - 6, y: 24, width: 12, height: 12, class: "mark ink" }));
    host.replaceChildren(part("svg", { viewBox: "0 0 400 72", role: "img", "aria-label": says, class: "drawing narrow" }, ...parts));
  };

  /* The key of every class. A label that is a digit is its own key; among numbers the others get letters. */
  const chooseKeys = (classes) => {
    const own = classes.filter((label) => /^\d$/.test(label)), letters = [..."asdfghjklqwertyiopzxcvbnm"];
    const spare = classes.some(isNumber) ? letters : [..."123456789", ...letters];
    return classes.map((label) => own.includes(label) ? label : spare.shift() || "");
  };

  /* `backend` has `classes`, `help`, and acts that end in a view: mode, place, text (null at the end), result.
     Keys count inside the element `keysOf`. */
  const startLabelling = (backend) => {
    const words = byId("deck-text"), keys = byId("deck-keys"), result = byId("deck-result");
    const { classes } = backend, keyOf = chooseKeys(classes);
    let isBusy = false;
    const show = ({ mode, place, text, result: says }) => {
      say(byId("deck-place"), place);
      byId("deck-help").textContent = backend.help[mode];
      words.textContent = text === null ? "Save the labels, or choose the other purpose." : text;
      words.scrollTop = 0;
      for (const button of all("[data-code]", keys)) button.disabled = text === null;
      for (const button of all("[data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
      say(result, says);
    };
    const act = async (name, argument, focus = true) => {
      if (isBusy) return; /* a key that comes before the next row is shown must not label it */
      isBusy = true;
      try {
        show(await backend[name](argument));
        if (focus) words.focus({ preventScroll: true });
      } catch (problem) {
        say(result, problem.message);
      } finally {
        isBusy = false;
      }
    };
    const add = (key, text, run, attributes = {}) => {
      const button = make("button", { type: "button", ...attributes }, make("kbd", { "aria-hidden": "true" }, key || "·"), make("span", {}));
      say(button.lastChild, text);
      button.lastChild.className = text === `\`${key}\`` ? "hidden" : "";
      button.addEventListener("click", run);
      keys.append(button);
    };
    classes.forEach((label, code) => add(keyOf[code], nameClass(label), () => act("label", code), { "data-code": code, class: `c${Math.min(code, 5)}` }));
    add("space", "skip", () => act("label", -1), { "data-code": -1 });
    add("U", "undo", () => act("undo"));
    (backend.keysOf || byId("deck")).addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const key = event.key.toLowerCase(), code = keyOf.indexOf(key);
      const isOver = keys.querySelector("[data-code]").disabled;
      if (key && code >= 0) { if (!isOver) act("label", code); }
      else if (key === " " && event.target.tagName !== "BUTTON") { if (!isOver) act("label", -1); }
      else if (key === "u" || key === "backspace") act("undo");
      else return;
      event.preventDefault();
    });
    for (const choice of all("[data-mode]")) choice.addEventListener("click", () => act("open", choice.dataset.mode));
    act("open", "estimate", false);
  };
