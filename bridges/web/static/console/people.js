// Who is here, and invitations: an address of each person's own, which its maker sees once and may take back.
import words from "/static/console/console_en.js";
import { $, draw, html, list, once, onSubmit, setAttribute, setText } from "/static/dom.js";
import { handOut, opens, sendFrom } from "/static/page.js";
import { fill } from "/static/words.js";

export class People {
  /** @param {import("/static/link.js").Link<import("/static/wire").FromConsole>} link */
  constructor(link) {
    this.link = link;
    opens("#people", "#who");
    $("#who").addEventListener("close", () => {
      $("#invited").hidden = true;
    });
    onSubmit("#call-me", (fields) => {
      const name = fields.name.value.trim().slice(0, 40);
      sessionStorage.setItem("name", name);
      link.send({ t: "call me", name });
    });
    onSubmit("#invite", ({ name, role }) => {
      sendFrom(link, name, { t: "invite", name: name.value.trim(), role: role.value });
    });
  }

  show(people, invites) {
    setText("#people", String(people.length));
    setAttribute(
      "#people",
      "aria-label",
      fill(words.people_here, { count: people.length, names: people.map((one) => one.name).join(", ") }),
    );
    const called = (one) => (one.name === one.role ? one.name : fill(words.role_of, one));
    draw(
      "#here",
      list(
        people,
        (one, place) => `${called(one)} ${place}`,
        (one) => html`<li>${called(one)}</li>`,
      ),
    );
    const revoke = (one) => once(() => this.link.send({ t: "revoke", number: one.number }));
    draw(
      "#invites",
      list(
        invites,
        (one) => one.number,
        (one) =>
          html`<li>${fill(words.invited_by, one)}<button type="button" aria-label=${fill(words.revoke_of, one)} @click=${revoke(one)}>${words.revoke}</button></li>`,
      ),
    );
  }

  invited({ name, role, url, code }) {
    $("#invited").hidden = false;
    setText("#invited p", fill(words.address_of, { name, role }));
    handOut("#invited .address", url, code);
  }
}
