import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Address of `fhaim up` during development of the page.
const services = process.env["FHAIM_SERVICES"] ?? "http://127.0.0.1:8080";
const proxy = { "/generation": services, "/computation": services, "/crypto": services };

export default defineConfig({
  plugins: [react()],
  build: { target: "es2022", assetsInlineLimit: 0 },
  worker: { format: "es" },
  server: { proxy },
  preview: { proxy },
});
