
  /* Rows to label in a report. Labels stay in this browser until they are saved. */
  const decks = data.decks;
  if (decks) {
    const labels = { estimate: [], predictions: [] }; /* of each row: a code, -1 where it was skipped */
    const done = []; /* decks, in the order of the keys pressed */
    const headline = byId("headline"), was = byId("was"), live = byId("live"), sure = byId("sure"), badge = byId("basis");
    const chart = byId("errors-chart"), expected = byId("expected"), shares = byId("live-shares"), saved = byId("saved");
    const estimated = byId("estimated-shares") || shares, next = byId("next-label") || make("li", {});
    const isMeasured = byId("verdict").dataset.basis === "measured";
    const first = [headline, sure, badge, chart, expected, next].map((element) => [element, [...element.childNodes], element.hidden]);
    const before = headline.textContent;
    let mode = "estimate", last = "", isKept = true;

    /* Labels survive a closed tab; a page in a frame may have no storage. */
    const place = "undrift-labels-" + [...JSON.stringify([decks.estimate, decks.predictions])].reduce((hash, letter) => (31 * hash + letter.codePointAt(0)) >>> 0, 7);
    const keep = (isSaved = false) => {
      try {
        if (isSaved) localStorage.removeItem(place); else localStorage.setItem(place, JSON.stringify({ labels, done }));
        isKept = true;
      } catch { isKept = isSaved; }
    };
    const restore = () => {
      try {
        const kept = JSON.parse(localStorage.getItem(place));
        for (const deck of Object.keys(labels)) labels[deck].push(...kept.labels[deck].slice(0, decks[deck].length));
        done.push(...kept.done);
        return done.length;
      } catch { return 0; }
    };

    /* The weighted error of the labelled rows. Rows of unequal weight count as fewer: as many as Kish's formula
       says, or as the variance of the weighted mean does, whichever is fewer. Only changed rows bear on the gain,
       whose interval is that of Agresti and Min times the share of rows that changed. */
    const measure = () => {
      let n = 0, sum = 0, squares = 0, wrong = 0, corrected = 0, spoilt = 0, changed = 0;
      const seen = [], totals = decks.classes.map(() => 0);
      labels.estimate.forEach((code, i) => {
        if (code < 0) return;
        const [, predicted, baseline, weight] = decks.estimate[i], miss = Number(predicted !== code);
        n += 1; sum += weight; squares += weight * weight; wrong += weight * miss;
        totals[code] += weight;
        seen.push([weight, miss]);
        if (predicted === baseline) return;
        changed += 1;
        corrected += Number(baseline !== code && !miss);
        spoilt += Number(baseline === code);
      });
      if (!n) return null;
      const error = wrong / sum, kish = sum * sum / squares;
      const variance = seen.reduce((total, [weight, miss]) => total + (weight * (miss - error)) ** 2, 0) / sum ** 2;
      const [low, high] = wilson(error, Math.min(kish, variance > 0 ? error * (1 - error) / variance : Infinity));
      const share = decks.changed_share, middle = (corrected - spoilt) / (changed + 2);
      const half = Z * Math.sqrt(((corrected + spoilt + 1) / (changed + 2) - middle ** 2) / (changed + 2));
      const gain = changed ? [share * (corrected - spoilt) / changed, share * Math.max(middle - half, -1), share * Math.min(middle + half, 1)] : null;
      return { n, error, low, high, gain, shares: totals.map((total) => [total / sum, ...wilson(total / sum, kish)]) };
    };
    const tell = () => {
      const measured = measure();
      live.hidden = !measured || !isMeasured;
      was.hidden = !measured || isMeasured;
      estimated.hidden = Boolean(measured);
      shares.hidden = !measured;
      if (byId("record")) byId("record").hidden = Boolean(measured);
      if (!measured) {
        for (const [element, nodes, isHidden] of first) { element.replaceChildren(...nodes); element.hidden = isHidden; }
        return "No label yet.";
      }
      const { n, error, low, high, gain } = measured;
      const so = !gain || (gain[1] <= 0 && gain[2] >= 0) ? "too few labels to say whether adaptation helped" : gain[1] > 0 ? "adaptation helped" : "adaptation hurt";
      const by = gain ? `, gain ${points(gain[0])} points (${points(gain[1])} to ${points(gain[2])})` : "";
      const says = `${percent(error)} of the predictions are wrong (95% interval ${percent(low)} to ${percent(high)})`;
      const whole = `By your ${plural(n, "label")}: ${says}; ${so}${by}.`;
      const top = measured.shares.map(([share, ...ends], code) => ({ share, ends, code })).sort((p, q) => q.share - p.share)[0];
      say(shares, `By your ${plural(n, "label")}, ${percent(top.share)} of the rows are ${nameClass(decks.classes[top.code])} (95% interval ${percent(top.ends[0])} to ${percent(top.ends[1])}).`);
      const left = decks.estimate.length - labels.estimate.length;
      next.textContent = left ? `Label ${left} more of the ${decks.estimate.length} rows, then save them.` : "Save the labels, so that they can be learnt.";
      if (isMeasured) {
        live.textContent = whole;
      } else {
        headline.textContent = `By your ${plural(n, "label")}, ${says}.`;
        was.textContent = `Before: ${before}`;
        badge.textContent = "measured by your labels";
        sure.hidden = false;
        sure.textContent = `${so[0].toUpperCase()}${so.slice(1)}${by}.`;
        expected.hidden = false;
        expected.textContent = "Measured on the rows that you labelled, with a 95% interval.";
        drawErrors(chart, [["measured", measured]]);
      }
      return whole;
    };
    const view = () => {
      const deck = decks[mode], at = labels[mode].length, isOver = at >= deck.length, says = tell();
      keep();
      return {
        mode,
        place: isOver ? `All ${deck.length} rows are done` : `Row ${at + 1} of ${deck.length}`,
        text: isOver ? null : deck[at][0],
        result: last + (mode === "estimate" ? says : `${plural(labels[mode].filter((code) => code >= 0).length, "label")} to learn from; the verdict does not move.`),
      };
    };
    const restored = restore();
    if (restored) last = `${plural(restored, "answer")} of an earlier visit restored. `;
    const deck = startLabelling({
      classes: decks.classes,
      end: "Save the labels, or choose the other purpose.",
      help: {
        estimate: "Rows are drawn at random. The error estimate updates as you label. The prediction is hidden, so that it cannot sway you; skip only rows that nobody could label.",
        predictions: "The least certain rows. They teach most and are the hardest, so they do not move the verdict.",
      },
      open: (name) => { mode = name; return view(); },
      label: (code) => {
        labels[mode].push(code);
        done.push(mode);
        last = `Row ${labels[mode].length}: ${code < 0 ? "skipped" : nameClass(decks.classes[code])}. `;
        return view();
      },
      undo: () => {
        if (done.length) {
          mode = done.pop();
          labels[mode].pop();
          last = "Undone. ";
        }
        return view();
      },
    });

    /* The link to the rows takes the focus along, so that keys count at once; so does the page's address. */
    for (const link of all("a[href='#label']")) link.addEventListener("click", () => setTimeout(deck.focus));
    const follow = () => { if (location.hash === "#label") setTimeout(deck.focus); };
    addEventListener("hashchange", follow);
    addEventListener("load", follow);

    /* The file: the text as it was read, the label, the purpose, and how many rows it stands for. */
    const quote = (cell) => /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
    byId("save").addEventListener("click", () => {
      const lines = [[...decks.columns, "label", "sampled", "weight"]], empty = decks.columns.slice(1).fill("");
      for (const deck of Object.keys(labels)) {
        labels[deck].forEach((code, i) => {
          if (code >= 0) lines.push([decks[deck][i][0], ...empty, decks.classes[code], deck, String(decks[deck][i][3])]);
        });
      }
      if (lines.length === 1) { saved.textContent = "There is no label to save yet."; return; }
      const file = new Blob([lines.map((line) => line.map(quote).join(",") + "\n").join("")], { type: "text/csv" });
      const address = URL.createObjectURL(file), link = make("a", { href: address, download: "labels.csv" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
      keep(true);
      saved.textContent = `${plural(lines.length - 1, "label")} saved as labels.csv.`;
    });
    addEventListener("beforeunload", (event) => { if (!isKept) event.preventDefault(); });
  }
