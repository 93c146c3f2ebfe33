// Starts `isocheck lsp` for files *.iso, and shows where to get it if it is not there.
"use strict";

const { window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function activate() {
  const [command, ...args] = workspace.getConfiguration("isolang").get("command");
  client = new LanguageClient(
    "isolang",
    { command, args },
    { documentSelector: [{ language: "isolang" }] },
  );
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(
      `isolang: ${command} cannot be started (${error.message}); hint: pip install 'isolang[lsp]', or set isolang.command`,
    );
  }
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
