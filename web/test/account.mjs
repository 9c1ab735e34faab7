// The account page: change of password, sign-out everywhere, usage and limits, and deletion of the account.
//
// Usage: node test/account.mjs [SCREENSHOT_DIR].
import {
  PASSWORD, SIZES, Server, TIMEOUT_MS, check, confirmColumns, looker, openBrowser, run, signUp, watchErrors,
} from "./support.mjs";

const OTHER = "another long password";
const file = new URL("small.csv", import.meta.url).pathname;
const server = await new Server().start();
const browser = await openBrowser();

async function visitor() {
  const page = await (await browser.newContext({ viewport: SIZES.wide })).newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  return page;
}

const page = await visitor();
const elsewhere = await visitor();
const look = looker(page);
const watch = watchErrors(page);
let email;

async function signIn(page, password) {
  await page.goto(`${server.address}/sign-in`);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Creates a dataset, so that there is something to count and to delete. */
async function begin() {
  email = await signUp(page, server.address);
  await page.getByRole("link", { name: "Create the first dataset" }).click();
  await confirmColumns(page, file);
  await page.getByRole("button", { name: "Encrypt and upload" }).click();
  await page.getByText("Done. The dataset is ready.").waitFor();
  await signIn(elsewhere, PASSWORD);
  await elsewhere.getByRole("heading", { name: "Datasets" }).waitFor();
}

async function limits() {
  await page.getByRole("link", { name: "Account" }).click();
  await page.getByText("stored bytes").waitFor();
  const used = page.locator(".limit", { hasText: /^datasets/ });
  check("usage and limit are shown", /1 of \d/.test(await used.innerText()), (await used.innerText()).replace(/\s+/g, " "));
  const stored = await page.locator(".limit", { hasText: "stored bytes" }).innerText();
  check("stored bytes are shown in units", /[km]B of/i.test(stored), stored.replace(/\s+/g, " "));
  await look("account");
}

async function password() {
  watch.expected.push(/401|403|422/);
  await page.getByLabel("Current password").fill("not the password");
  await page.getByLabel("New password").fill(OTHER);
  await page.getByRole("button", { name: "Change password" }).click();
  const refused = await page.getByRole("alert").innerText();
  check("a wrong password is rejected", refused.length > 10, refused);
  watch.expected.pop();
  await page.getByLabel("Current password").fill(PASSWORD);
  await page.getByRole("button", { name: "Change password" }).click();
  await page.getByText("The password is changed.").waitFor();
  await look("account-password");
  await page.reload();
  await page.getByText("stored bytes").waitFor();
  check("the session that changes the password stays signed in", true);
  await elsewhere.reload();
  await elsewhere.getByRole("heading", { name: "Sign in" }).waitFor();
  check("other sessions are signed out", true);
  await signIn(elsewhere, PASSWORD);
  await elsewhere.getByRole("alert").waitFor();
  check("the old password is rejected", true);
  await signIn(elsewhere, OTHER);
  await elsewhere.getByRole("heading", { name: "Datasets" }).waitFor();
  check("the new password is accepted", true);
}

async function everywhere() {
  await page.getByRole("button", { name: "Sign out everywhere" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await elsewhere.reload();
  await elsewhere.getByRole("heading", { name: "Sign in" }).waitFor();
  check("all sessions are signed out", true);
}

async function close() {
  await signIn(page, OTHER);
  await page.getByRole("link", { name: "Account" }).click();
  await page.getByRole("button", { name: "Delete the account" }).click();
  const dialog = page.getByRole("dialog", { name: /^Delete the account/ });
  await dialog.getByLabel("Your password").fill(OTHER);
  await look("account-delete");
  await dialog.getByRole("button", { name: "Delete the account" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  watch.expected.push(/401/);
  await signIn(page, OTHER);
  await page.getByRole("alert").waitFor();
  watch.expected.pop();
  check("the account is deleted, with its dataset", true);
}

await run(server, browser, page, [
  begin, limits, password, everywhere, close,
  function noErrors() {
    check("no console errors", watch.problems.length === 0, watch.problems.join("; "));
  },
]);
