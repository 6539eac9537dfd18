
  /* Rows to label that the server of `undrift label` hands out. It saves every answer. */
  const session = data.session;
  if (session) {
    const token = new URLSearchParams(location.search).get("token") || "", tab = Math.random().toString(36).slice(2);
    let current = null, last = "", isFinished = false;
    const ask = async (path, body) => {
      const options = { headers: { "X-Undrift-Token": token }, cache: "no-store" };
      if (body) Object.assign(options, { method: "POST", body: JSON.stringify({ ...body, tab }) });
      const query = body ? "" : `?${new URLSearchParams({ tab })}`;
      let response = null;
      try {
        response = await fetch(`/api/${path}${query}`, options);
      } catch {
        throw new Error("The server does not answer. Your labels are saved. Run undrift label again and open the address that it prints.");
      }
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error);
      return answer;
    };
    const nameRow = (row) => `Row ${(row + 1).toLocaleString("en")}`;
    const bounds = ({ low, high }, level) => `${level}% interval ${percent(low)} to ${percent(high)}`;
    /* What the labels changed: no number says "worse" or "better" where its interval contains 0. */
    const compare = ({ difference, error }) => {
      if (!difference || error.n < session.goal) return "";
      const { gain, low, high } = difference;
      if (low > 0) return `Your labels lowered the error by ${points(gain)} points (${points(low)} to ${points(high)}).`;
      if (high < 0) return `Your labels raised the error by ${points(-gain)} points (${points(-high)} to ${points(-low)}).`;
      return `Whether your labels lowered the error is not certain: by ${points(low)} to ${points(high)} points.`;
    };
    const rate = (share) => share === null || share === undefined ? "\u2013" : `${Math.round(100 * share)}%`;
    /* What labels measure, once they are enough to say it. */
    const isTold = ({ measured, n }) => measured && n >= session.least_measured;
    const tellClasses = ({ shares, shares_interval: intervals, by_class: { expected, measured: counted }, mistakes, error }) => {
      const measured = isTold(error) ? counted : null;
      const rates = measured || expected;
      byId("shares-basis").textContent = measured ? `Recall and precision measured on ${plural(error.n, "label")}` : "Recall and precision expected";
      byId("shares").tBodies[0].replaceChildren(...Object.entries(shares).map(([label, share]) => {
        const ends = intervals[label], own = rates[label];
        const cell = make("td", { class: "number" }, percent(share));
        const digits = ends[1] - ends[0] < 0.02 ? 1 : 0; /* the ends of a narrow one would be equal */
        cell.append(make("br"), make("small", {}, `${ends.map((end) => (100 * end).toFixed(digits)).join("\u2013")}%`));
        const cells = [own.recall, own.precision].map((of) => make("td", { class: "number" }, rate(of)));
        const row = make("tr", {}, make("th", { scope: "row" }, ...splitName(label)), cell, ...cells);
        return row;
      }));
      byId("mistakes").replaceChildren(...(measured ? mistakes : []).map(({ truth, predicted, share }) => {
        const item = make("li", {});
        say(item, `${nameClass(truth)} taken for ${nameClass(predicted)}: ${percent(share)} of the rows, by ${plural(error.n, "label")}`);
        return item;
      }));
    };
    const tell = (state) => {
      const { expected, before, changed } = state;
      const isMeasured = isTold(state.error), error = isMeasured ? state.error : expected;
      const isReached = isMeasured && error.n >= session.goal, n = state.error.n || 0;
      byId("basis").textContent = isMeasured ? `measured on ${plural(error.n, "label")}` : "expected";
      say(byId("headline"), isReached
        ? `${percent(error.error)} of the predictions are wrong (${bounds(error, 95)}).`
        : isMeasured ? `So far about ${percent(error.error)} of the predictions are wrong (${bounds(error, 95)}).`
        : `About ${percent(error.error)} of the predictions are expected to be wrong (${bounds(error, 90)}).`);
      say(byId("advice"), state.advice);
      byId("goal").value = Math.min(n, session.goal);
      const shown = isMeasured ? [["now, measured", error], ["before your labels", before]] : [];
      shown.push([isMeasured ? "expected before" : "expected", expected]);
      drawErrors(byId("errors-chart"), shown);
      byId("difference").textContent = isMeasured ? compare(state) : n ? `${plural(n, "label")} of rows drawn at random: the error is told from ${plural(session.least_measured, "label")} on.` : "";
      byId("learnt").textContent = session.can_learn
        ? `${plural(state.n_labels, "label")} saved, ${plural(state.n_learnt, "label")} learnt${state.is_learning ? "; learning \u2026" : ""}. Each row is predicted without its own label.`
        : `${plural(state.n_labels, "label")} saved. This model cannot learn them: make one with undrift adapt --model FILE --updatable.`;
      tellClasses(state);
      byId("stories").hidden = !state.readings.length;
      byId("readings").replaceChildren(...state.readings.slice(0, 4).map(({ story, weight }) => make("li", {}, `${story} Weight ${Math.round(100 * weight)}%.`)));
      say(byId("changed-count"), state.n_learnt ? `${changed.n.toLocaleString("en")} of ${plural(changed.of, "prediction")} changed when the last labels were learnt.` : "Nothing is learnt yet: every 5 labels are learnt together.");
      byId("changed").replaceChildren(...changed.rows.map((row) => {
        const item = make("li", {}, make("strong", {}), " ", make("bdi", {}, row.text));
        say(item.firstChild, `${nameClass(row.from)} → ${nameClass(row.to)}`);
        return item;
      }));
    };
    /* Labels are learnt while one goes on: ask until that is done. */
    let isFollowing = false;
    const follow = async () => {
      if (isFollowing) return;
      isFollowing = true;
      try {
        for (let state = { is_learning: true }; state.is_learning && !isFinished; tell(state)) {
          await new Promise((done) => setTimeout(done, 1000));
          state = await ask("state");
        }
      } catch (problem) {
        byId("learnt").textContent = problem.message;
      } finally {
        isFollowing = false;
      }
    };
    const view = async (state) => {
      tell(state);
      if (state.is_learning) follow();
      current = await ask("next");
      const isOver = current.row === null;
      const place = isOver ? "All rows are done" : `${nameRow(current.row)}, ${current.is_question ? plural(state.n_questions, "question") : plural(current.n_left, "row")} left`;
      return { mode: current.is_question ? "question" : "drawn", place, text: current.text, result: last };
    };
    startLabelling({
      classes: session.classes,
      keysOf: document,
      saves: true,
      end: "Press Finish.",
      help: {
        question: "The stories disagree on this row: its label tells which of them is right.",
        drawn: "Rows are drawn at random, doubtful ones more often. Every label measures the error and teaches.",
      },
      open: async () => {
        const state = await ask("state");
        last = last || (state.n_labels ? `${plural(state.n_labels, "label")} saved before.` : "No label yet.");
        return view(state);
      },
      label: async (code) => {
        const state = await ask("label", { row: current.row, label: code < 0 ? null : session.classes[code] });
        last = `${nameRow(current.row)}: ${code < 0 ? "skipped" : `${nameClass(session.classes[code])}, saved`}.`;
        return view(state);
      },
      undo: async () => {
        const state = await ask("undo", {});
        last = state.row === null ? "There is nothing to undo." : `${nameRow(state.row)}: answer withdrawn.`;
        return view(state);
      },
    });
    byId("finish").addEventListener("click", async () => {
      if (isFinished) return;
      isFinished = true;
      for (const button of all("#deck-keys button, #finish")) button.disabled = true;
      byId("finished").textContent = "Saving \u2026 Keep this page open until it says so.";
      try {
        const { written } = await ask("finish", {});
        byId("finished").textContent = `Saved. ${written.join(" ")} You can close this page.`;
      } catch (problem) {
        byId("finished").textContent = problem.message;
      }
    });
  }
