
  /* Rows to label that the server of `undrift label` hands out. It saves every answer. */
  const session = data.session;
  if (session) {
    const token = new URLSearchParams(location.search).get("token") || "", tab = Math.random().toString(36).slice(2);
    let mode = "estimate", current = null, last = "", isFinished = false;
    const ask = async (path, body) => {
      const options = { headers: { "X-Undrift-Token": token }, cache: "no-store" };
      if (body) Object.assign(options, { method: "POST", body: JSON.stringify({ ...body, tab }) });
      const query = body ? "" : `?${new URLSearchParams({ mode, tab })}`;
      let response = null;
      try {
        response = await fetch(`/api/${path}${query}`, options);
      } catch {
        throw new Error("The server does not answer. Your labels are saved. Run undrift label again and open the address that it prints.");
      }
      const found = await response.json();
      if (!response.ok) throw new Error(found.error);
      return found;
    };
    const nameRow = (row) => `Row ${(row + 1).toLocaleString("en")}`;
    const count = ({ error, n }) => `${Math.round(error * n)} of ${plural(n, "labelled row")} ${Math.round(error * n) === 1 ? "was" : "were"} predicted wrongly`;
    const bounds = ({ low, high }, level) => `${level}% interval ${percent(low)} to ${percent(high)}`;
    const tell = (state) => {
      const { error, shares, changed } = state;
      const isMeasured = Boolean(error && error.measured);
      byId("basis").textContent = isMeasured ? `measured on ${plural(error.n, "label")}` : error && error.error === null ? "not known" : "expected";
      say(byId("headline"), !error ? "The error is not known yet."
        : error.error === null ? `The error is not known: expect ${percent(error.low)} to ${percent(error.high)} of the predictions to be wrong.`
        : isMeasured && error.n < session.few ? `So far ${count(error)} (${bounds(error, 95)}).`
        : isMeasured ? `${percent(error.error)} of the predictions are wrong (${bounds(error, 95)}).`
        : `About ${percent(error.error)} of the predictions are expected to be wrong (${bounds(error, 90)}).`);
      say(byId("advice"), state.advice);
      if (error && error.error !== null) drawError(byId("errors-chart"), isMeasured ? "measured" : "expected", error); else byId("errors-chart").replaceChildren();
      byId("learnt").textContent = session.can_learn
        ? `${plural(state.n_labels, "label")} saved, ${plural(state.n_learnt, "label")} learnt. Each row is predicted without its own label.`
        : `${plural(state.n_labels, "label")} saved. This model cannot learn them: make one with undrift adapt --model FILE --updatable.`;
      byId("shares").replaceChildren(...Object.entries(shares).map(([label, share]) => {
        const ends = state.shares_interval && state.shares_interval[label], item = make("li", {});
        say(item, `${nameClass(label)} ${percent(share)}${ends ? ` (${percent(ends[0])} to ${percent(ends[1])})` : " of the predictions"}`);
        return item;
      }));
      say(byId("changed-count"), state.n_learnt ? `${changed.n.toLocaleString("en")} of ${plural(changed.of, "prediction")} changed when the last labels were learnt.` : "Nothing is learnt yet: every 5 labels are learnt together.");
      byId("changed").replaceChildren(...changed.rows.map((row) => {
        const item = make("li", {}, make("strong", {}), ` ${row.text}`);
        say(item.firstChild, `${nameClass(row.from)} → ${nameClass(row.to)}`);
        return item;
      }));
    };
    const view = async (state) => {
      tell(state);
      current = await ask("next");
      const isOver = current.row === null;
      return { mode, place: isOver ? "All rows are done" : `${nameRow(current.row)}${mode === "estimate" ? `, ${plural(current.n_left, "row")} left` : ""}`, text: current.text, result: last };
    };
    startLabelling({
      classes: session.classes,
      keysOf: document,
      help: {
        estimate: "Rows are drawn at random. They measure the error, and are learnt too.",
        predictions: "The rows whose labels would change predictions most. They do not measure the error.",
      },
      open: async (name) => {
        mode = name;
        const state = await ask("state");
        last = last || (state.n_labels ? `${plural(state.n_labels, "label")} saved before.` : "No label yet.");
        return view(state);
      },
      label: async (code) => {
        const state = await ask("label", { row: current.row, label: code < 0 ? null : session.classes[code], mode });
        last = `${nameRow(current.row)}: ${code < 0 ? "skipped" : `${nameClass(session.classes[code])}, saved`}.`;
        return view(state);
      },
      undo: async () => {
        const state = await ask("undo", {});
        last = state.row === null ? "There is nothing to undo." : `${nameRow(state.row)}: answer withdrawn.`;
        return view(state);
      },
    });
    if (!session.can_learn) for (const button of all("[data-mode=predictions]")) button.disabled = true;
    byId("finish").addEventListener("click", async () => {
      if (isFinished) return;
      try {
        await ask("finish", {});
        isFinished = true;
        byId("finished").textContent = "Finished. The terminal lists the files. You can close this page.";
        for (const button of all("#deck-keys button, #finish")) button.disabled = true;
      } catch (problem) {
        byId("finished").textContent = problem.message;
      }
    });
  }
