// Who is here, and invitations: an address of each person's own, which its maker sees once and may take back.
const $ = (selector) => document.querySelector(selector);
const make = (tag, className, text) => {
  const one = document.createElement(tag);
  if (className) one.className = className;
  if (text !== undefined) one.textContent = text;
  return one;
};

export class People {
  /** @param {import("/static/link.js").Link<import("/static/wire").FromConsole>} link */
  constructor(link) {
    this.link = link;
    this.drawn = "";
    $("#people").addEventListener("click", () => {
      $("#who").showModal();
      $("#who").focus();
    });
    $("#who-close").addEventListener("click", () => $("#who").close());
    $("#who").addEventListener("close", () => {
      $("#invited").hidden = true;
    });
    $("#call-me").addEventListener("submit", (event) => {
      event.preventDefault();
      const name = event.target.elements.name.value.trim().slice(0, 40);
      sessionStorage.setItem("name", name);
      link.send({ t: "call me", name });
    });
    $("#invite").addEventListener("submit", (event) => {
      event.preventDefault();
      const { name, role } = event.target.elements;
      link.send({ t: "invite", name: name.value.trim(), role: role.value });
      name.value = "";
    });
    $("#invited button").addEventListener("click", () => {
      $("#invited input").select();
      navigator.clipboard?.writeText($("#invited input").value);
    });
  }

  show(people, invites) {
    const key = JSON.stringify([people, invites]);
    if (key === this.drawn) return;
    this.drawn = key;
    $("#people").textContent = String(people.length);
    $("#people").setAttribute("aria-label", `${people.length} here: ${people.map((one) => one.name).join(", ")}`);
    $("#here").replaceChildren(
      ...people.map((one) => make("li", "", one.name === one.role ? one.name : `${one.name} (${one.role})`)),
    );
    $("#invites").replaceChildren(
      ...invites.map((one) => {
        const line = make("li", "", `${one.name}, ${one.role}, invited by ${one.by} `),
          button = make("button", "", "Revoke");
        button.type = "button";
        button.setAttribute("aria-label", `Revoke the invitation of ${one.name}`);
        button.addEventListener("click", () => this.link.send({ t: "revoke", number: one.number }));
        line.append(button);
        return line;
      }),
    );
  }

  invited({ name, role, url, code }) {
    $("#invited").hidden = false;
    $("#invited p").textContent = `For ${name}, as ${role}. It is shown this once.`;
    $("#invited input").value = url;
    const svg = $("#invited svg");
    svg.toggleAttribute("hidden", !code);
    if (!code) return;
    svg.setAttribute("viewBox", `0 0 ${code.width} ${code.width}`);
    svg.querySelector("path").setAttribute("d", code.path);
  }
}
