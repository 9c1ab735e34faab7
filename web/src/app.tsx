import { lazy, Suspense, useSyncExternalStore } from "react";
import { BrowserRouter, Link, Navigate, NavLink, Outlet, Route, Routes, useLocation } from "react-router";
import { onSession, signedInAs, signOut } from "./api/client";
import { useActiveUpload } from "./crypto/uploads";
import { Datasets } from "./pages/datasets";
import { SignIn } from "./pages/sign-in";
import { Boundary } from "./components/boundary";
import { Loading, NotFound } from "./components/ui";

const NewDataset = lazy(() => import("./pages/new-dataset"));
const DatasetPage = lazy(() => import("./pages/dataset"));
const JobPage = lazy(() => import("./pages/job"));
const ResultPage = lazy(() => import("./pages/result"));
const ComparePage = lazy(() => import("./pages/compare"));
const SharedPage = lazy(() => import("./pages/shared"));
const ApiKeys = lazy(() => import("./pages/api-keys"));
const AccountPage = lazy(() => import("./pages/account"));

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
            <Route path="/compare/:first/:second?" element={<ComparePage />} />
            <Route path="/shared/:link" element={<SharedPage />} />
            <Route path="/api-keys" element={<ApiKeys />} />
            <Route path="/account" element={<AccountPage />} />
          </Route>
          <Route path="*" element={<main id="content"><NotFound /></main>} />
        </Route>
      </Routes>
    </BrowserRouter>
  );
}

function Frame() {
  const email = useSignedIn();
  const { pathname } = useLocation();
  return (
    <>
      <a className="skip" href="#content">Skip to the content</a>
      <header className="top">
        <div>
          <Link className="brand" to="/"><img src="/icon.svg" alt="" />fhaim</Link>
          {email !== undefined && (
            <>
              <nav aria-label="Main">
                <Link to="/" aria-current={pathname === "/" ? "page" : isOfDatasets(pathname)}>Datasets</Link>
                <NavLink to="/api-keys">API keys</NavLink>
                <NavLink to="/account">Account</NavLink>
              </nav>
              <UploadLink pathname={pathname} />
              <span className="who" title={email}>{email}</span>
              <button type="button" onClick={() => void signOut().catch(() => undefined)}>Sign out</button>
            </>
          )}
        </div>
      </header>
      <Boundary key={pathname}>
        <Suspense fallback={<main><Loading /></main>}>
          <Outlet />
        </Suspense>
      </Boundary>
    </>
  );
}

/** Returns whether a page belongs to the list of datasets. */
function isOfDatasets(pathname: string): boolean {
  return /^\/(datasets|jobs|compare)\//.test(pathname);
}

/** A link back to the running upload, shown on all other pages. */
function UploadLink({ pathname }: { pathname: string }) {
  const upload = useActiveUpload();
  if (!upload) return null;
  const address = `/datasets/${upload.dataset.id}`;
  if (pathname === address) return null;
  const { done, objects } = upload.state;
  return <Link className="tag busy" to={address}>Encrypting: {Math.round((100 * done) / Math.max(1, objects))} %</Link>;
}

/** Pages for signed-in users. Others are sent to sign in and then come back. */
function Members() {
  const email = useSignedIn();
  const { pathname, hash } = useLocation();
  // A link's secret follows the #. It is kept for the way back, and not sent anywhere.
  if (email === undefined) return <Navigate to="/sign-in" replace state={{ from: pathname + hash }} />;
  return <Outlet />;
}
