import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const services = "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  build: { target: "es2022", assetsInlineLimit: 0 },
  worker: { format: "es" },
  server: {
    proxy: { "/generation": services, "/computation": services, "/crypto": services },
  },
});
