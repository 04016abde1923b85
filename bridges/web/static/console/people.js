// Who is here, and invitations: an address of each person's own, which its maker sees once and may take back.
import { $, draw, html, list, setAttribute, setText } from "/static/page.js";

export class People {
  /** @param {import("/static/link.js").Link<import("/static/wire").FromConsole>} link */
  constructor(link) {
    this.link = link;
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
    setText("#people", String(people.length));
    setAttribute("#people", "aria-label", `${people.length} here: ${people.map((one) => one.name).join(", ")}`);
    const called = (one) => (one.name === one.role ? one.name : `${one.name} (${one.role})`);
    draw(
      "#here",
      list(
        people,
        (one, place) => `${called(one)} ${place}`,
        (one) => html`<li>${called(one)}</li>`,
      ),
    );
    const revoke = (one) => () => this.link.send({ t: "revoke", number: one.number });
    draw(
      "#invites",
      list(
        invites,
        (one) => one.number,
        (one) =>
          html`<li>${one.name}, ${one.role}, invited by ${one.by} <button type="button" aria-label=${`Revoke the invitation of ${one.name}`} @click=${revoke(one)}>Revoke</button></li>`,
      ),
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
