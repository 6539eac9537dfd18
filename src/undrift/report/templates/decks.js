
  /* Rows to label. Labels stay here until they are saved. */
  const decks = data.decks;
  if (decks) {
    const help = {
      estimate: "Drawn at random, changed and unchanged predictions apart: weights make up for that. The verdict follows every key. The prediction is not shown, so that it cannot sway you; skip only what nobody could label.",
      predictions: "The least certain rows, none of the other deck. They teach most and are the hardest, so they do not move the verdict.",
    };
    const labels = { estimate: [], predictions: [] }; /* of each row: a code, -1 where it was skipped */
    const done = []; /* names of the decks, in the order of the keys pressed */
    let name = "estimate", isSaved = true;
    const words = byId("deck-text"), keys = byId("deck-keys"), result = byId("deck-result"), live = byId("live");
    const headline = byId("headline"), was = byId("was"), first = headline.textContent;
    const isMeasured = byId("verdict").dataset.basis === "measured";
    const percent = (share) => `${(100 * share).toFixed(1)}%`;
    const points = (share) => (100 * share).toFixed(1).replace("-", "\u2212");
    const Z = 1.959963984540054;

    /* Wilson's interval of a share that was measured on n rows; n need not be whole. */
    const wilson = (p, n) => {
      const middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n);
      const half = Z / (1 + Z * Z / n) * Math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n));
      return [Math.max(0, middle - half), Math.min(1, middle + half)];
    };
    /* The weighted error of the labelled rows. Rows of unequal weight count as fewer: as many as Kish's formula
       says, or as the variance of the weighted mean does, whichever is fewer. Only changed rows bear on the gain,
       whose interval is that of Agresti and Min times the share of rows that changed. */
    const measure = () => {
      let n = 0, sum = 0, squares = 0, wrong = 0, corrected = 0, spoilt = 0, changed = 0;
      const seen = [];
      labels.estimate.forEach((code, i) => {
        if (code < 0) return;
        const [, predicted, before, weight] = decks.estimate[i], miss = Number(predicted !== code);
        n += 1; sum += weight; squares += weight * weight; wrong += weight * miss;
        seen.push([weight, miss]);
        if (predicted === before) return;
        changed += 1;
        corrected += Number(before !== code && !miss);
        spoilt += Number(before === code);
      });
      if (!n) return null;
      const error = wrong / sum;
      const variance = seen.reduce((total, [weight, miss]) => total + (weight * (miss - error)) ** 2, 0) / sum ** 2;
      const rows = Math.min(sum * sum / squares, variance > 0 ? error * (1 - error) / variance : Infinity);
      const [low, high] = wilson(error, rows), share = decks.changed_share;
      const middle = (corrected - spoilt) / (changed + 2);
      const half = Z * Math.sqrt(((corrected + spoilt + 1) / (changed + 2) - middle ** 2) / (changed + 2));
      const gain = changed ? [share * (corrected - spoilt) / changed, share * Math.max(middle - half, -1), share * Math.min(middle + half, 1)] : null;
      return { n, error, low, high, gain };
    };
    const tell = () => {
      const found = measure();
      live.hidden = !found;
      was.hidden = !found || isMeasured;
      if (!found) { headline.textContent = first; return ""; }
      const { n, error, low, high, gain } = found;
      const so = !gain || (gain[1] <= 0 && gain[2] >= 0) ? "too few labels to say whether adaptation helped" : gain[1] > 0 ? "adaptation helped" : "adaptation hurt";
      const by = gain ? `, gain ${points(gain[0])} points (${points(gain[1])} to ${points(gain[2])})` : "";
      const says = `${percent(error)} of the predictions are wrong (95% interval ${percent(low)} to ${percent(high)})`;
      live.textContent = `By your ${n} label${n > 1 ? "s" : ""}: ${says}; ${so}${by}.`;
      if (!isMeasured) {
        headline.textContent = `By your ${n} label${n > 1 ? "s" : ""}, ${says}.`;
        was.textContent = `Before: ${first}`;
      }
      return live.textContent;
    };
    const show = (focus) => {
      const deck = decks[name], at = labels[name].length, isOver = at >= deck.length;
      byId("deck-place").textContent = isOver ? `All ${deck.length} rows are done` : `Row ${at + 1} of ${deck.length}`;
      byId("deck-help").textContent = help[name];
      words.textContent = isOver ? "Save the labels, or take the other deck." : deck[at][0];
      words.scrollTop = 0;
      for (const button of all("[data-code]", keys)) button.disabled = isOver;
      for (const button of all("[data-deck]")) button.setAttribute("aria-pressed", String(button.dataset.deck === name));
      const n = labels[name].filter((code) => code >= 0).length, says = tell();
      result.textContent = name === "estimate" ? says || "No label yet." : `${n} label${n === 1 ? "" : "s"}; the verdict does not move.`;
      if (focus) words.focus({ preventScroll: true });
    };
    const label = (code) => {
      if (labels[name].length >= decks[name].length) return;
      labels[name].push(code);
      done.push(name);
      isSaved = false;
      show(true);
    };
    const undo = () => {
      if (!done.length) return;
      name = done.pop();
      labels[name].pop();
      show(true);
    };
    const button = (key, text, act, more = {}) => {
      const element = make("button", { type: "button", ...more }, make("kbd", { "aria-hidden": "true" }, key), text);
      element.addEventListener("click", act);
      keys.append(element);
    };
    decks.classes.forEach((label_, code) => button(code < 9 ? String(code + 1) : "·", label_, () => label(code), { "data-code": code, class: `c${Math.min(code, 5)}` }));
    button("space", "skip", () => label(-1), { "data-code": -1 });
    button("U", "undo", undo);
    byId("deck").addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const code = "123456789".indexOf(event.key);
      if (event.key.length === 1 && code >= 0 && code < decks.classes.length) label(code);
      else if (event.key === " " && event.target.tagName !== "BUTTON") label(-1);
      else if (event.key === "u" || event.key === "U" || event.key === "Backspace") undo();
      else return;
      event.preventDefault();
    });
    for (const choice of all("[data-deck]")) choice.addEventListener("click", () => { name = choice.dataset.deck; show(true); });

    /* The file: the text as it was read, the label, what it was drawn for, and how many rows it stands for. */
    const quote = (cell) => /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
    byId("save").addEventListener("click", () => {
      const lines = [[...decks.columns, "label", "sampled", "weight"]], empty = decks.columns.slice(1).fill("");
      for (const deck of ["estimate", "predictions"]) {
        labels[deck].forEach((code, i) => {
          if (code >= 0) lines.push([decks[deck][i][0], ...empty, decks.classes[code], deck, String(decks[deck][i][3])]);
        });
      }
      if (lines.length === 1) { byId("saved").textContent = "There is no label to save yet."; return; }
      const file = new Blob([lines.map((line) => line.map(quote).join(",") + "\n").join("")], { type: "text/csv" });
      const address = URL.createObjectURL(file), link = make("a", { href: address, download: "labels.csv" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
      isSaved = true;
      byId("saved").textContent = `${lines.length - 1} labels saved as labels.csv.`;
    });
    addEventListener("beforeunload", (event) => { if (!isSaved) event.preventDefault(); });
    show(false);
  }
