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
  for (const title of all("svg.drawing title")) {
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

  /* Buttons that copy. */
  for (const button of all("[data-copies]")) {
    const source = byId(button.dataset.copies), status = button.nextElementSibling;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent);
        status.textContent = "Copied.";
      } catch {
        getSelection().selectAllChildren(source);
        status.textContent = document.execCommand("copy") ? "Copied." : "Selected: press Ctrl-C.";
      }
    });
  }

  const data = JSON.parse(byId("data").textContent);
