"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  root.classList.add("js");

  /* Elements are made from names and text alone: nothing from the data is ever read as markup. */
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  /* Light and dark. */
  byId("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  /* Hover and focus: one tip for all marks. */
  const tip = byId("tip");
  for (const title of all("svg.drawing title, svg.labels title")) {
    title.parentElement.dataset.tip = title.textContent;
    title.remove();
  }
  const showTip = (mark, x, y) => {
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 4))}px`;
    tip.style.top = `${y + 18 + height > innerHeight ? y - height - 10 : y + 18}px`;
  };
  const hideTip = () => { tip.hidden = true; };
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest && event.target.closest("[data-tip]");
    if (mark) showTip(mark, event.clientX, event.clientY); else hideTip();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  document.addEventListener("scroll", hideTip, { passive: true });

  /* Arrow keys go through the marks of a chart, from left to right. */
  for (const chart of all(".chart")) {
    let marks = null, at = -1;
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity }[event.key];
      if (!step) return;
      if (!marks) {
        const place = (mark) => mark.getBoundingClientRect();
        marks = all("[data-tip]", chart).map((mark) => [place(mark).left, place(mark).top, mark]);
        marks.sort((p, q) => p[0] - q[0] || p[1] - q[1]);
      }
      if (!marks.length) return;
      event.preventDefault();
      if (at >= 0) marks[at][2].classList.remove("match");
      at = step === -Infinity ? 0 : (at + step + marks.length) % marks.length;
      const mark = marks[at][2], box = mark.getBoundingClientRect();
      mark.classList.add("match");
      showTip(mark, box.right, box.bottom);
    });
    chart.addEventListener("blur", () => {
      if (marks && at >= 0) marks[at][2].classList.remove("match");
      hideTip();
    });
  }

  /* Series that can be hidden, where a chart has several. */
  for (const chart of all(".chart")) {
    const groups = all("g[data-series]", chart);
    if (groups.length < 2) continue;
    const boxes = groups.map((group) => {
      const box = make("input", { type: "checkbox" });
      box.checked = true;
      box.addEventListener("change", () => { group.setAttribute("visibility", box.checked ? "visible" : "hidden"); });
      return make("label", { class: "check" }, box, ` ${group.dataset.series}`);
    });
    const group = make("div", { class: "chips", role: "group", "aria-label": "Series shown" }, ...boxes);
    chart.before(make("details", { class: "series" }, make("summary", {}, "Choose what is shown"), group));
  }

  /* Tables that sort. Numbers are compared as numbers, whatever their unit. */
  const valueOf = (cell) => {
    const text = cell.textContent.trim(), number = parseFloat(text.replace(/,/g, "").replace("−", "-"));
    return /^[+−-]?[\d.,]+(e[+-]?\d+)?( ?%| s)?$/.test(text) && !Number.isNaN(number) ? number : text;
  };
  const compare = (p, q) => {
    if (typeof p === typeof q) return typeof p === "number" ? p - q : p.localeCompare(q);
    return typeof p === "number" ? -1 : 1;
  };
  for (const table of all("table.sortable")) {
    all("thead th", table).forEach((head, column) => {
      const button = make("button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows].map((row, i) => [valueOf(row.cells[column]), i, row]);
        rows.sort((p, q) => (up ? compare(p[0], q[0]) : compare(q[0], p[0])) || p[1] - q[1]);
        table.tBodies[0].append(...rows.map((row) => row[2]));
      });
    });
  }

  /* Tables that filter. */
  for (const input of all("[data-filters]")) {
    const table = byId(input.dataset.filters), status = byId(`${input.dataset.filters}-status`);
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase().split(/\s+/);
      let n = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !wanted.every((part) => text.includes(part));
        n += !row.hidden;
      }
      status.textContent = input.value ? `${n} of ${table.tBodies[0].rows.length} rows` : "";
    });
  }

  /* The scatter: find a term. */
  const find = byId("find-term");
  if (find) {
    const chart = document.querySelector("#chart-shift .chart"), svg = chart.querySelector("svg");
    const dots = all("[data-term]", chart), status = byId("find-status");
    find.addEventListener("input", () => {
      const wanted = find.value.trim().toLowerCase();
      for (const old of all(".match-name", svg)) old.remove();
      svg.classList.toggle("searching", Boolean(wanted));
      const matches = dots.filter((dot) => {
        const hit = Boolean(wanted) && dot.dataset.term.toLowerCase().includes(wanted);
        dot.classList.toggle("match", hit);
        return hit;
      });
      const exact = matches.filter((dot) => dot.dataset.term.toLowerCase() === wanted);
      const named = [...exact, ...matches.filter((dot) => !exact.includes(dot))].slice(0, 8);
      for (const dot of named) {
        svg.append(dot);
        const x = Number(dot.getAttribute("cx")), right = x > 480;
        const name = document.createElementNS(svg.namespaceURI, "text");
        name.setAttribute("x", x + (right ? -8 : 8));
        name.setAttribute("y", Number(dot.getAttribute("cy")) + 5);
        name.setAttribute("text-anchor", right ? "end" : "start");
        name.setAttribute("class", "match-name");
        name.textContent = dot.dataset.term;
        svg.append(name);
      }
      status.textContent = !wanted ? "" : matches.length
        ? `${matches.length} matches. ${matches.length === 1 || exact.length ? named[0].dataset.tip.replace(/\n/g, "; ") : ""}`
        : "Not among the drawn terms; the browser of terms below has more.";
    });
  }

  /* The browser of terms. */
  const pick = byId("pick-term");
  if (pick) {
    const { names, rows, classes } = JSON.parse(byId("data").textContent).terms;
    const list = byId("pick-list"), panel = byId("pick-panel"), only = byId("only-new"), status = byId("pick-status");
    const lower = names.map((name) => name.toLowerCase());
    const starred = (i) => (i < rows.length && !rows[i][2] ? "★ " : "") + names[i];
    const percent = (share) => share ? `${(100 * share).toPrecision(2)}%` : "never";
    const bars = (title, partners, svgName) => {
      const items = [], largest = Math.max(...partners.filter((_, i) => i % 2), 1e-9);
      for (let i = 0; i < partners.length; i += 2) {
        const bar = document.createElementNS(svgName, "svg"), rect = document.createElementNS(svgName, "rect");
        bar.setAttribute("viewBox", "0 0 100 10");
        bar.setAttribute("preserveAspectRatio", "none");
        bar.setAttribute("aria-hidden", "true");
        rect.setAttribute("width", 100 * partners[i + 1] / largest);
        rect.setAttribute("height", 10);
        rect.setAttribute("class", "b");
        bar.append(rect);
        const name = partners[i] < rows.length ? link(partners[i]) : make("span", {}, names[partners[i]]);
        items.push(make("li", {}, name, bar, make("span", {}, String(partners[i + 1]))));
      }
      return make("div", {}, make("h4", {}, title), items.length ? make("ul", {}, ...items) : make("p", { class: "quiet" }, "none"));
    };
    const link = (i) => {
      const button = make("button", { type: "button" }, starred(i));
      button.addEventListener("click", () => { show(i); panel.querySelector("h3").focus(); });
      return button;
    };
    const show = (i) => {
      const [code, weight, nLabelled, source, target, from, to] = rows[i];
      const svgName = document.querySelector("svg").namespaceURI;
      const title = make("h3", { tabindex: "-1", id: "picked" }, names[i]);
      const seen = nLabelled ? `in ${nLabelled.toLocaleString("en")} labelled rows` : "★ never seen in the labelled source";
      const says = `Speaks for ${classes[code]} with weight ${weight.toPrecision(3)} through all layers; ${seen}. In ${percent(source)} of the source's documents and ${percent(target)} of the target's.`;
      panel.replaceChildren(title, make("p", {}, says), make("div", { class: "columns" },
        bars("Is expected from", from, svgName), bars("Makes expected", to, svgName)));
      for (const button of list.children) button.setAttribute("aria-pressed", String(Number(button.dataset.index) === i));
    };
    const search = () => {
      const wanted = pick.value.trim().toLowerCase(), hits = [];
      for (let i = 0; i < rows.length; i++) if ((!only.checked || !rows[i][2]) && lower[i].includes(wanted)) hits.push(i);
      hits.sort((p, q) => (lower[q] === wanted) - (lower[p] === wanted) || (lower[q].startsWith(wanted)) - (lower[p].startsWith(wanted)) || p - q);
      list.replaceChildren(...hits.slice(0, 40).map((i) => {
        const button = link(i);
        button.dataset.index = i;
        button.setAttribute("aria-pressed", "false");
        return button;
      }));
      status.textContent = `${hits.length.toLocaleString("en")} terms${hits.length > 40 ? ", the 40 most far-reaching are listed" : ""}`;
      if (hits.length) show(hits[0]); else panel.replaceChildren();
    };
    pick.addEventListener("input", search);
    only.addEventListener("change", search);
    search();
  }
})();
