// aedes as its documentation starts: one process, everything in memory.
// node aedes.mjs FOLDER_WITH_NODE_MODULES PORT
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { pathToFileURL } from "node:url";

const [folder, port] = process.argv.slice(2);
const found = createRequire(`${folder}/`).resolve("aedes");
const { Aedes } = await import(pathToFileURL(found));
const broker = await Aedes.createBroker();
createServer({ noDelay: true }, broker.handle).listen(Number(port), "127.0.0.1");
