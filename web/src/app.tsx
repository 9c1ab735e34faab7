import { lazy, Suspense, useSyncExternalStore } from "react";
import { BrowserRouter, Link, Navigate, NavLink, Outlet, Route, Routes, useLocation } from "react-router";
import { onSession, signedInAs, signOut } from "./api/client";
import { Datasets } from "./pages/datasets";
import { SignIn } from "./pages/sign-in";
import { Loading } from "./parts/ui";

const NewDataset = lazy(() => import("./pages/new-dataset"));
const DatasetPage = lazy(() => import("./pages/dataset"));
const JobPage = lazy(() => import("./pages/job"));
const ResultPage = lazy(() => import("./pages/result"));
const ApiKeys = lazy(() => import("./pages/api-keys"));

function useSignedIn(): string | undefined {
  return useSyncExternalStore(onSession, signedInAs);
}

export function App() {
  return (
    <BrowserRouter>
      <Routes>
        <Route element={<Frame />}>
          <Route path="/sign-in" element={<SignIn key="in" />} />
          <Route path="/sign-up" element={<SignIn key="up" isNew />} />
          <Route element={<Members />}>
            <Route path="/" element={<Datasets />} />
            <Route path="/datasets/new" element={<NewDataset />} />
            <Route path="/datasets/:dataset" element={<DatasetPage />} />
            <Route path="/jobs/:job" element={<JobPage />} />
            <Route path="/jobs/:job/result" element={<ResultPage />} />
            <Route path="/api-keys" element={<ApiKeys />} />
          </Route>
          <Route path="*" element={<NotFound />} />
        </Route>
      </Routes>
    </BrowserRouter>
  );
}

function Frame() {
  const email = useSignedIn();
  return (
    <>
      <a className="skip" href="#content">Skip to the content</a>
      <header className="top">
        <div>
          <Link className="brand" to="/"><img src="/icon.svg" alt="" />fhaim</Link>
          {email !== undefined && (
            <>
              <nav aria-label="Main">
                <NavLink to="/" end>Datasets</NavLink>
                <NavLink to="/api-keys">API keys</NavLink>
              </nav>
              <span className="who">{email}</span>
              <button type="button" onClick={() => void signOut().catch(() => undefined)}>Sign out</button>
            </>
          )}
        </div>
      </header>
      <Suspense fallback={<main><Loading /></main>}>
        <Outlet />
      </Suspense>
    </>
  );
}

/** Pages for whoever is signed in; others are sent to sign in and come back. */
function Members() {
  const email = useSignedIn();
  const { pathname } = useLocation();
  if (email === undefined) return <Navigate to="/sign-in" replace state={{ from: pathname }} />;
  return <Outlet />;
}

function NotFound() {
  return (
    <main id="content">
      <h1>There is no such page</h1>
      <p><Link to="/">Go to your datasets</Link></p>
    </main>
  );
}
