
  /* Labelling with keys, for reports and for `undrift label`. */
  const Z = 1.959963984540054;
  const percent = (share) => `${(100 * share).toFixed(1)}%`;
  const points = (share) => (100 * share).toFixed(1).replace("-", "\u2212");
  const plural = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
  const isNumber = (label) => /^-?[\d.,]+$/.test(label);
  const colourOf = (code, classes) => classes.length <= 8 ? `c${code}` : ""; /* of many classes none has a colour */
  const nameClass = (label) => isNumber(label) ? `\`${label}\`` : label;

  /* The parts of a class name; lines may break between them. A number is set as code. */
  const splitName = (label) => isNumber(label) ? [make("code", {}, label)] : label.split(/(?<=[^\p{L}\p{N}\s])(?=[\p{L}\p{N}])/u).flatMap((part, i) => i ? [make("wbr"), part] : [part]);

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

  /* Errors with their intervals, drawn as reports draw them: a list of names and errors, on one scale. */
  const drawErrors = (host, errors) => {
    host.innerHTML = "<svg></svg>";
    const space = host.firstChild.namespaceURI;
    const part = (tag, attributes, ...children) => {
      const element = document.createElementNS(space, tag);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      element.append(...children);
      return element;
    };
    const highest = Math.max(...errors.map(([, { high }]) => high)), bottom = 4 + 40 * errors.length;
    const step = [0.01, 0.02, 0.05, 0.1, 0.2].find((size) => highest / size <= 6) || 0.2;
    const end = Math.min(1, Math.max(highest * 1.05, step)), place = (share) => 12 + 366 * share / end;
    const parts = [part("line", { x1: 12, y1: bottom, x2: 378, y2: bottom, class: "zero" })];
    for (let share = 0; share <= end + 1e-9; share += step) {
      parts.push(part("line", { x1: place(share), y1: bottom, x2: place(share), y2: bottom + 5, class: "grid" }));
      parts.push(part("text", { x: place(share), y: bottom + 23, "text-anchor": "middle", class: "tick" }, `${Math.round(100 * share)}%`));
    }
    const lines = errors.map(([name, { error, low, high }], i) => {
      const says = `${name}: ${percent(error)} (${percent(low)} to ${percent(high)})`, y = 30 + 40 * i, look = i ? "soft" : "ink";
      parts.push(part("text", { x: 12, y: y - 13 }, says));
      parts.push(part("line", { x1: place(low), y1: y, x2: place(high), y2: y, class: `whisker ${look}-line` }));
      parts.push(part("rect", { x: place(error) - 6, y: y - 6, width: 12, height: 12, class: `mark ${look}` }));
      return says;
    });
    host.replaceChildren(part("svg", { viewBox: `0 0 400 ${bottom + 28}`, role: "img", "aria-label": lines.join("; "), class: "drawing narrow" }, ...parts));
  };

  /* The key of every class. A label that is a digit is its own key; among numbers the others get letters. */
  const MOST_KEYS = 9; /* classes that have a key of their own; of more, one types a part of the name */
  const chooseKeys = (classes) => {
    const own = classes.filter((label) => /^\d$/.test(label)), letters = [..."asdfghjkl"];
    const spare = classes.some(isNumber) ? letters : [..."123456789"];
    return classes.map((label) => own.includes(label) ? label : spare.shift());
  };

  /* The classes whose names have a text in them: names that begin with it first, then words that do. */
  const findClasses = (classes, typed) => {
    const wanted = typed.trim().toLowerCase();
    const rank = (label) => {
      const at = label.toLowerCase().indexOf(wanted);
      return at <= 0 ? at : /[\p{L}\p{N}]/u.test(label[at - 1]) ? 2 : 1;
    };
    return classes.map((label, code) => [rank(label), code]).filter(([at]) => at >= 0).sort((p, q) => p[0] - q[0] || p[1] - q[1]).map((pair) => pair[1]);
  };

  /* `backend` has `classes`, `help`, and acts that end in a view: mode, place, text (null at the end), result.
     Keys count inside the element `keysOf`. */
  const startLabelling = (backend) => {
    const words = byId("deck-text"), keys = byId("deck-keys"), acts = byId("deck-acts"), result = byId("deck-result"), find = byId("deck-find");
    const { classes } = backend, isMany = classes.length > MOST_KEYS, keyOf = isMany ? [] : chooseKeys(classes);
    const rest = isMany ? find : words; /* where the focus is while a row is read */
    find.parentElement.hidden = !isMany;
    let isBusy = false;
    const show = ({ mode, place, text, result: says }) => {
      say(byId("deck-place"), place);
      byId("deck-help").textContent = backend.help[mode];
      words.textContent = text === null ? backend.end : text;
      words.scrollTop = 0;
      for (const button of all("#deck [data-code]")) button.disabled = text === null;
      for (const button of all("[data-mode]")) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
      say(result, says);
    };
    const act = async (name, argument, focus = true) => {
      if (isBusy) return; /* a key that comes before the next row is shown must not label it */
      isBusy = true;
      if (name !== "open" && backend.saves) say(result, "Saving \u2026");
      try {
        show(await backend[name](argument));
        if (isMany) { find.value = ""; filter(); }
        if (focus) rest.focus({ preventScroll: true });
      } catch (problem) {
        say(result, problem.message);
      } finally {
        isBusy = false;
      }
    };
    const add = (host, key, text, run, attributes = {}) => {
      const button = make("button", { type: "button", ...attributes }, make("kbd", { "aria-hidden": "true" }, key), make("span", {}));
      say(button.lastChild, text);
      button.lastChild.className = text === `\`${key}\`` ? "hidden" : "";
      button.firstChild.hidden = !key;
      button.addEventListener("click", run);
      host.append(button);
      return button;
    };
    const buttons = classes.map((label, code) => add(keys, keyOf[code] || "", nameClass(label), () => act("label", code), { "data-code": code, class: colourOf(code, classes) }));
    const skip = add(acts, "space", "skip", () => act("label", -1), { "data-code": -1 });
    add(acts, isMany ? "\u232b" : "U", "undo", () => act("undo"));

    /* Of many classes: those that match are shown, the first is the one that Enter takes. Some are below. */
    const filter = () => {
      const matches = find.value.trim() ? findClasses(classes, find.value) : classes.map((_, code) => code);
      for (const button of buttons) { button.hidden = true; button.firstChild.hidden = true; }
      matches.forEach((code, i) => {
        buttons[code].hidden = false;
        buttons[code].firstChild.textContent = i ? "" : "Enter";
        buttons[code].firstChild.hidden = i > 0 || !find.value.trim();
        keys.append(buttons[code]);
      });
      return matches;
    };
    find.addEventListener("input", () => {
      const n = filter().length;
      say(byId("deck-found"), find.value.trim() ? n ? `${n} of ${classes.length} classes` : "No class has this in its name." : "");
    });
    const press = (key) => {
      if (isMany) {
        if (key === "enter" && find.value.trim()) { const [first] = filter(); if (first !== undefined && !skip.disabled) act("label", first); }
        else if (key === " " && !find.value) { if (!skip.disabled) act("label", -1); }
        else if (key === "backspace" && !find.value) act("undo");
        else return false;
        return true;
      }
      const code = keyOf.indexOf(key);
      if (code >= 0) { if (!skip.disabled) act("label", code); }
      else if (key === " ") { if (!skip.disabled) act("label", -1); }
      else if (key === "u" || key === "backspace") act("undo");
      else return false;
      return true;
    };
    (backend.keysOf || byId("deck")).addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const key = event.key.toLowerCase();
      if (event.target.tagName === "BUTTON" && (key === " " || key === "enter")) return;
      if (press(key)) event.preventDefault();
      else if (isMany && event.key.length === 1 && event.target !== find && event.target.tagName !== "SUMMARY") find.focus();
    });
    for (const choice of all("[data-mode]")) choice.addEventListener("click", () => act("open", choice.dataset.mode));
    if (isMany) filter();
    act("open", "estimate", Boolean(backend.keysOf));
    return { focus: () => rest.focus({ preventScroll: true }) };
  };
