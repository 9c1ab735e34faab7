//! Datasets and jobs over HTTP, with a worker and a computation service.

use crate::common::computation::Manner;
use crate::common::{Kind, PASSWORD, Service, User, fresh, problem, read, terms};
use fhaim_api::Page;
use fhaim_api::account::{Secret, Session};
use fhaim_api::dataset::{Dataset, DatasetState};
use fhaim_api::job::{Happening, Job, JobState, ModelView, ReleasedStatistic};
use fhaim_api::problem::ProblemKind;
use fhaim_generation::Change;
use fhaim_platform::program::Program;
use reqwest::{Method, StatusCode};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use uuid::Uuid;

over_both!(
    datasets_become_ready_and_are_listed_in_pages,
    invalid_terms_are_rejected_with_their_field,
    job_runs_to_its_end_with_events_releases_and_model,
    batch_is_asked_for_once_unless_it_is_forgotten,
    job_of_killed_workers_asks_for_the_same_releases,
    job_whose_workers_keep_dying_fails,
    cancelled_job_resumes_on_retry,
    refusals_fail_a_job_and_outages_delay_it,
    failed_job_resumes_with_its_run,
    job_without_a_run_takes_none,
    repeated_puts_create_one_dataset_and_one_job,
    budget_of_two_runs_allows_two_jobs,
    names_and_notes_change_nothing_else,
    deletion_stops_jobs_and_removes_their_data,
    deletion_that_its_program_left_is_continued,
    waiting_job_does_not_delay_another_account,
    damaged_model_is_named_and_fitted_again,
    damaged_dataset_is_named_and_does_not_affect_others,
    stopping_ends_streams_and_returns_the_job,
    streams_end_with_the_tokens_of_their_account,
);

async fn datasets_become_ready_and_are_listed_in_pages(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let dataset = ana.new_dataset(terms()).await;
    assert_eq!(
        (dataset.state, dataset.runs_left),
        (DatasetState::Uploading, 1)
    );
    assert_eq!(dataset.terms.0, terms());
    assert_eq!(dataset.budget, terms().plan().unwrap().core.budget.into());
    let path = format!("/v1/datasets/{}", dataset.id);
    assert_eq!(ana.no_job(dataset.id).await.kind, ProblemKind::Conflict);
    let ready = format!("{path}/ready");
    let open = ana.refused(Method::POST, &ready, 409).await;
    assert!(open.detail.unwrap().contains("1 object missing,"));
    service.computation.complete_upload(dataset.id);
    for _ in 0..2 {
        let dataset: Dataset = ana.post(&ready).await;
        assert_eq!(dataset.state, DatasetState::Ready);
    }
    let mut made = vec![dataset.id];
    for _ in 0..4 {
        made.push(ana.new_dataset(terms()).await.id);
    }
    made.reverse();
    let (mut listed, mut path) = (Vec::new(), "/v1/datasets?limit=2".to_owned());
    loop {
        let page: Page<Dataset> = ana.get(&path).await;
        listed.extend(page.items.iter().map(|dataset| dataset.id));
        let Some(next) = page.next else { break };
        path = format!("/v1/datasets?limit=2&after={next}");
    }
    assert_eq!(listed, made);
    ana.refused(Method::GET, "/v1/datasets?limit=0", 422).await;
    ana.refused(Method::GET, "/v1/datasets?after=x", 422).await;
    ana.refused(Method::GET, "/v1/datasets?page=2", 422).await;
}

async fn invalid_terms_are_rejected_with_their_field(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let good = json!({ "name": "d", "terms": terms() });
    let refused = async |pointer: &str, value: serde_json::Value, what: &str| {
        let mut new = good.clone();
        *new.pointer_mut(pointer).unwrap() = value;
        let response = ana.put(&fresh("/v1/datasets"), new).await;
        let detail = problem(response, 422).await.detail.unwrap();
        assert!(detail.contains(what), "{detail}");
    };
    refused("/name", json!(""), "name").await;
    refused("/terms/epsilon", json!(0.0), "epsilon").await;
    refused("/terms/delta", json!(1.0), "delta").await;
    refused("/terms/runs", json!(65), "64").await;
    refused("/terms/mechanism", json!("aim"), "clear").await;
    refused("/terms/mechanism", json!("magic"), "magic").await;
    refused("/terms/model_bytes", json!(1u64 << 40), "model_bytes").await;
    refused("/terms/model_bytes", json!(16), "cap").await;
    refused("/terms/record_bound", json!(0), "record_bound").await;
    refused("/terms/target_weight", json!(0), "target_weight").await;
    refused("/terms/schema/columns", json!([]), "columns").await;
    assert!(
        ana.get::<Page<Dataset>>("/v1/datasets")
            .await
            .items
            .is_empty()
    );
}

/// Checks that event numbers are consecutive from 1 and that events are in a sensible order.
async fn check_events(user: &User<'_>, job: &Job, attempts: usize) {
    let events = user.events(job.id, 0).await;
    assert!(
        events
            .iter()
            .map(|event| event.number)
            .eq(1..=events.len() as u64)
    );
    assert!(events.is_sorted_by_key(|event| event.at));
    let states: Vec<JobState> = (events.iter())
        .filter_map(|event| match event.what {
            Happening::State { state, .. } => Some(state),
            _ => None,
        })
        .collect();
    let mut expected = vec![JobState::Running; attempts + 2];
    expected[0] = JobState::Queued;
    expected[attempts + 1] = JobState::Done;
    assert_eq!(states, expected);
    let (mut asked, mut releases) = (None, 0);
    for event in &events {
        match &event.what {
            Happening::Phase { releases, .. } => {
                assert_eq!(asked, None);
                asked = Some(*releases);
            }
            Happening::Released {
                releases: count,
                cells,
                ..
            } => {
                assert_eq!(asked.take(), Some(*count));
                assert!(cells >= count);
                releases += count;
            }
            Happening::Computing { .. } => assert!(asked.is_some()),
            Happening::State { .. } => {}
        }
    }
    // The last phase is the fit, which asks for no releases.
    assert_eq!((asked, releases), (Some(0), job.releases));
    for after in [
        0,
        1,
        events.len() / 2,
        events.len() - 1,
        events.len(),
        events.len() + 7,
    ] {
        let rest = user.events(job.id, after as u64).await;
        let numbers = rest.iter().map(|event| event.number as usize);
        assert!(numbers.eq(after + 1..=events.len()), "after {after}");
    }
}

async fn job_runs_to_its_end_with_events_releases_and_model(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let dataset = ana.ready_dataset(terms()).await;
    let job = ana.new_job(dataset.id).await;
    // A worker may take the job before the response is complete.
    let taken = (JobState::Running, 1);
    assert!([(JobState::Queued, 0), taken].contains(&(job.state, job.attempts)));
    assert_eq!(job.releases, 0);
    // Watches from the beginning while the job runs.
    let watched = ana.events(job.id, 0).await;
    let job = ana.job(job.id).await;
    assert_eq!(
        (job.state, job.attempts, &job.error),
        (JobState::Done, 1, &None)
    );
    assert_eq!(job.progress.as_ref().unwrap().phase, "Fitting the model");
    assert_eq!(watched.len(), ana.events(job.id, 0).await.len());
    check_events(&ana, &job, 1).await;

    let plan = terms().plan().unwrap();
    let releases: Vec<ReleasedStatistic> = ana.get(&format!("/v1/jobs/{}/releases", job.id)).await;
    assert_eq!(releases.len(), job.releases);
    assert!(
        releases
            .iter()
            .map(|r| r.number)
            .eq(0..releases.len() as u32)
    );
    let spent: u128 = releases
        .iter()
        .map(|r| r.cost.exact.parse::<u128>().unwrap())
        .sum();
    assert_eq!(spent.to_string(), job.spent.exact);
    assert!(spent <= plan.job.rho.count());
    assert_eq!(releases[0].phase, "Counting values of each column");
    assert!(
        releases
            .iter()
            .all(|r| r.values.len() == r.statistic.cells())
    );
    let named = releases.iter().find(|r| r.attributes == ["sex"]).unwrap();
    assert_eq!(named.values.len(), 1);

    let view: ModelView = ana.get(&format!("/v1/jobs/{}/model", job.id)).await;
    assert_eq!(view.attributes, ["sex", "race", "age", "dose", "sick"]);
    assert!((view.total - 2000.0).abs() < 50.0, "{}", view.total);
    assert!(view.measured_pairs.contains(&[2, 3]) && !view.cliques.is_empty());
    let table = crate::common::table();
    for (a, one_way) in view.one_ways.iter().enumerate() {
        let counts = table.counts(&fhaim_domain::Clique::new([a])).unwrap();
        assert_eq!(one_way.labels.len(), counts.len());
        for ((fitted, measured), &count) in
            one_way.fitted.iter().zip(&one_way.measured).zip(&counts)
        {
            assert!(
                (measured - count as f64).abs() < 100.0,
                "{a}: {measured} for {count}"
            );
            assert!(
                (fitted - measured).abs() < 100.0,
                "{a}: {fitted} for {measured}"
            );
        }
    }
    let dataset: Dataset = ana.get(&format!("/v1/datasets/{}", dataset.id)).await;
    assert_eq!(dataset.runs_left, 0);
    service.computation.check();
}

/// A batch is asked for once, however long it takes, and again only if the computation service has
/// forgotten it.
async fn batch_is_asked_for_once_unless_it_is_forgotten(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let dataset = ana.ready_dataset(terms()).await;
    service.computation.answer(Manner::Release(3));
    let job = ana.new_job(dataset.id).await;
    ana.wait_for(job.id, JobState::Done).await;
    let asks = service.computation.asks(job.id);
    assert!(asks.len() > 2, "{asks:?}");
    assert!(asks.iter().all(|&ask| ask == (1, 4)), "{asks:?}");

    service.computation.answer(Manner::Hang);
    let dataset = ana.ready_dataset(terms()).await;
    let job = ana.new_job(dataset.id).await;
    wait(|| {
        service
            .computation
            .asks(job.id)
            .iter()
            .any(|&(_, looks)| looks > 2)
    })
    .await;
    service.computation.forget();
    wait(|| {
        service
            .computation
            .asks(job.id)
            .iter()
            .any(|&(_, looks)| looks > 2)
    })
    .await;
    assert_eq!(service.computation.asks(job.id)[0].0, 1);
    service.computation.answer(Manner::Release(0));
    ana.wait_for(job.id, JobState::Done).await;
    service.computation.check();
}

/// Two jobs of one dataset get the same answers from the stand-in, so the job whose workers are
/// killed must ask for the same releases as the undisturbed job.
async fn job_of_killed_workers_asks_for_the_same_releases(kind: Kind) {
    let mut service = Service::start_working(kind).await;
    let mut terms = terms();
    terms.runs = 2;
    let ids = {
        let ana = service.user("ana@x.example").await;
        let dataset = ana.ready_dataset(terms).await;
        let undisturbed = ana.new_job(dataset.id).await;
        ana.wait_for(undisturbed.id, JobState::Done).await;
        service.computation.answer(Manner::Hang);
        let job = ana.new_job(dataset.id).await;
        (
            undisturbed.id,
            job.id,
            ana.session.access_token.0.clone(),
            ana.account.clone(),
        )
    };
    let (undisturbed, job, _, _) = ids;
    // Kills the worker during the first three batches.
    let mut kills = 0;
    for batches in 1..4 {
        wait(|| service.computation.batches(job) == batches).await;
        service.kill_worker().await;
        kills += 1;
        service.computation.answer(Manner::Release(1));
        service.work();
        if batches < 3 {
            // Lets one batch through; the next one hangs.
            wait(|| service.computation.batches(job) > batches).await;
            service.computation.answer(Manner::Hang);
        }
    }
    let session: Session = read(
        service.sign_in("ana@x.example", PASSWORD).await,
        StatusCode::CREATED,
    )
    .await;
    let ana = User {
        service: &service,
        account: ids.3,
        session,
    };
    let done = ana.wait_for(job, JobState::Done).await;
    assert_eq!(done.attempts as usize, kills + 1);
    check_events(&ana, &done, kills + 1).await;
    for part in ["releases", "model"] {
        let text = async |job: Uuid| {
            let path = format!("/v1/jobs/{job}/{part}");
            let answer = ana.send(Method::GET, &path, None).await;
            answer.text().await.unwrap()
        };
        assert_eq!(text(job).await, text(undisturbed).await, "{part}");
    }
    service.computation.check();
}

async fn wait(reached: impl Fn() -> bool) {
    for _ in 0..3000 {
        if reached() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the condition was not reached within 30 seconds");
}

async fn job_whose_workers_keep_dying_fails(kind: Kind) {
    let mut service = Service::start_working(kind).await;
    service.computation.answer(Manner::Hang);
    let (job, token) = {
        let ana = service.user("ana@x.example").await;
        let dataset = ana.ready_dataset(terms()).await;
        (ana.new_job(dataset.id).await.id, ana.token().to_owned())
    };
    let path = format!("/v1/jobs/{job}");
    // The first attempt stores a batch; on a busy machine the second may do so.
    for attempt in 1..=9 {
        let job: Job = loop {
            let response = service
                .send_as(Some(&token), Method::GET, &path, None)
                .await;
            let job: Job = response.json().await.unwrap();
            if job.attempts == attempt || job.state == JobState::Failed {
                break job;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        if job.state == JobState::Failed {
            assert!(job.attempts >= 7, "{job:?}");
            assert!(job.error.unwrap().contains("5 attempts"));
            return;
        }
        wait(|| service.computation.batches(job.id) == 1).await;
        // Long enough for the attempt to count.
        tokio::time::sleep(Duration::from_millis(100)).await;
        service.kill_worker().await;
        service.work();
    }
    panic!("nine attempts made no progress, but the job did not fail");
}

async fn cancelled_job_resumes_on_retry(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let dataset = ana.ready_dataset(terms()).await;
    let job = ana.new_job(dataset.id).await;
    ana.wait_until(job.id, |job| job.releases > 0).await;
    service.computation.answer(Manner::Hang);
    let path = |verb: &str| format!("/v1/jobs/{}/{verb}", job.id);
    let running = ana.job(job.id).await;
    assert_eq!(
        running.state,
        JobState::Running,
        "the batches come too fast for this test"
    );
    for results in ["model", "synthetic"] {
        ana.refused(Method::GET, &path(results), 409).await;
    }
    for _ in 0..2 {
        let cancelled: Job = ana.post(&path("cancel")).await;
        assert_eq!(cancelled.state, JobState::Cancelled);
    }
    // The stream ends after the event; the worker stops and takes other work.
    let events = ana.events(job.id, 0).await;
    let cancelled = Happening::State {
        state: JobState::Cancelled,
        error: None,
    };
    assert_eq!(events.last().unwrap().what, cancelled);
    service.computation.answer(Manner::Release(1));
    let spent = ana.job(job.id).await.spent;
    ana.done_job().await;
    let after = ana.job(job.id).await;
    assert_eq!((after.state, &after.spent), (JobState::Cancelled, &spent));

    let queued: Job = ana.post(&path("retry")).await;
    assert!([JobState::Queued, JobState::Running].contains(&queued.state));
    let done = ana.wait_for(job.id, JobState::Done).await;
    assert!(done.releases > running.releases);
    assert_eq!(
        ana.refused(Method::POST, &path("retry"), 409).await.kind,
        ProblemKind::Conflict
    );
    assert_eq!(
        ana.refused(Method::POST, &path("cancel"), 409).await.kind,
        ProblemKind::Conflict
    );
    service.computation.check();
}

async fn refusals_fail_a_job_and_outages_delay_it(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    for (manner, reason) in [
        (Manner::Refuse, "the crypto service refused"),
        (
            Manner::Problem(ProblemKind::NotFound),
            "no longer has the dataset",
        ),
        (Manner::Problem(ProblemKind::Forbidden), "Not allowed"),
        (Manner::Garble, "do not fit its requests"),
    ] {
        service.computation.answer(manner);
        let dataset = ana.ready_dataset(terms()).await;
        let job = ana.new_job(dataset.id).await;
        let job = ana.wait_for(job.id, JobState::Failed).await;
        let error = job.error.unwrap();
        assert!(error.contains(reason), "{manner:?}: {error}");
        assert_eq!(job.releases, 0);
        // The job has begun, so it keeps its run.
        let spent = ana.no_job(dataset.id).await;
        assert_eq!(spent.kind, ProblemKind::BudgetSpent);
        let way_out = format!("resume it with `fhaim job retry {}`", job.id);
        assert!(spent.detail.unwrap().contains(&way_out));
        let shown: Dataset = ana.get(&format!("/v1/datasets/{}", dataset.id)).await;
        assert_eq!(shown.runs_left, 0);
    }
    // An outage: the job waits and resumes.
    service
        .computation
        .answer(Manner::Problem(ProblemKind::Unauthenticated));
    let dataset = ana.ready_dataset(terms()).await;
    let job = ana.new_job(dataset.id).await;
    let waiting = ana.wait_until(job.id, |job| job.error.is_some()).await;
    assert_eq!(waiting.state, JobState::Queued);
    assert!(waiting.error.unwrap().contains("trying again in 1 s"));
    ana.wait_until(job.id, |job| {
        job.error.as_ref().is_some_and(|e| e.contains("in 2 s"))
    })
    .await;
    service.computation.answer(Manner::Release(0));
    let done = ana.wait_for(job.id, JobState::Done).await;
    assert_eq!((done.attempts, done.error), (3, None));
}

/// A job to which the crypto service gave no run holds none. It does not block the job that has the
/// run, and it takes no run before it is retried.
async fn job_without_a_run_takes_none(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    service.computation.answer(Manner::WithoutRun);
    let dataset = ana.ready_dataset(terms()).await;
    let job = ana.new_job(dataset.id).await;
    let job = ana.wait_for(job.id, JobState::Failed).await;
    assert!(job.error.unwrap().contains("budget is spent"));
    let shown: Dataset = ana.get(&format!("/v1/datasets/{}", dataset.id)).await;
    assert_eq!(shown.runs_left, 1);
    // The job that has the run, which this service had forgotten.
    service.computation.answer(Manner::Release(0));
    let holder = ana.new_job(dataset.id).await;
    ana.wait_for(holder.id, JobState::Done).await;
    ana.refused(Method::POST, &format!("/v1/jobs/{}/retry", job.id), 409)
        .await;
}

/// A job that failed before it got an answer resumes with the run that it holds.
async fn failed_job_resumes_with_its_run(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    service.computation.answer(Manner::Garble);
    let dataset = ana.ready_dataset(terms()).await;
    let job = ana.new_job(dataset.id).await;
    ana.wait_for(job.id, JobState::Failed).await;
    ana.no_job(dataset.id).await;
    service.computation.answer(Manner::Release(0));
    // A second call changes nothing, as after a lost response. It is refused if the job is done already.
    let path = format!("/v1/jobs/{}/retry", job.id);
    let retry = || ana.send(Method::POST, &path, None);
    let (one, other) = tokio::join!(retry(), retry());
    let answers = [one.status(), other.status()];
    assert!(answers.contains(&StatusCode::OK), "{answers:?}");
    let is_expected = |status: &StatusCode| [StatusCode::OK, StatusCode::CONFLICT].contains(status);
    assert!(answers.iter().all(is_expected), "{answers:?}");
    ana.wait_for(job.id, JobState::Done).await;
    let spent = ana.no_job(dataset.id).await;
    assert!(spent.detail.unwrap().contains("adds its epsilon"));
}

/// Repeating a call whose response was lost creates nothing and spends nothing. A different call under
/// the same identifier is refused.
async fn repeated_puts_create_one_dataset_and_one_job(kind: Kind) {
    let service = Service::start_working(kind).await;
    let (ana, eve) = (
        service.user("ana@x.example").await,
        service.user("eve@x.example").await,
    );
    let terms = terms();
    let path = fresh("/v1/datasets");
    let new = json!({ "name": "d", "terms": terms });
    let tries = (0..4).map(|_| ana.put(&path, new.clone()));
    let answers = futures_util::future::join_all(tries).await;
    let created = answers.iter().filter(|a| a.status() == StatusCode::CREATED);
    assert_eq!(created.count(), 1);
    for answer in answers {
        assert!(answer.status().is_success());
        let dataset: Dataset = answer.json().await.unwrap();
        assert!(path.ends_with(&dataset.id.to_string()) && dataset.terms.0 == terms);
    }
    for (pointer, value) in [("/name", json!("e")), ("/terms/runs", json!(2))] {
        let mut other = new.clone();
        *other.pointer_mut(pointer).unwrap() = value;
        problem(ana.put(&path, other).await, 409).await;
    }
    problem(eve.put(&path, new).await, 404).await;
    let listed: Page<Dataset> = ana.get("/v1/datasets").await;
    assert_eq!(listed.items.len(), 1);

    service.computation.complete_upload(listed.items[0].id);
    let _: Dataset = ana.post(&format!("{path}/ready")).await;
    let id = Uuid::now_v7();
    let job = format!("{path}/jobs/{id}");
    let tries = (0..4).map(|_| ana.put(&job, json!({})));
    let answers = futures_util::future::join_all(tries).await;
    let created = answers.iter().filter(|a| a.status() == StatusCode::CREATED);
    assert_eq!(created.count(), 1);
    assert!(answers.iter().all(|answer| answer.status().is_success()));
    ana.wait_for(id, JobState::Done).await;
    let again: Job = read(ana.put(&job, json!({})).await, StatusCode::OK).await;
    assert_eq!((again.id, again.state), (id, JobState::Done));
    let jobs: Page<Job> = ana.get(&format!("{path}/jobs")).await;
    assert_eq!(jobs.items.len(), 1);
    // Under another dataset of the same account, and under one of another account.
    let other = ana.ready_dataset(self::terms()).await.id;
    let taken = format!("/v1/datasets/{other}/jobs/{id}");
    problem(ana.put(&taken, json!({})).await, 409).await;
    let theirs = eve.ready_dataset(self::terms()).await.id;
    let taken = format!("/v1/datasets/{theirs}/jobs/{id}");
    problem(eve.put(&taken, json!({})).await, 404).await;
}

async fn budget_of_two_runs_allows_two_jobs(kind: Kind) {
    let service = Service::start(kind).await;
    let ana = service.user("ana@x.example").await;
    let mut terms = terms();
    terms.runs = 2;
    let dataset = ana.ready_dataset(terms).await;
    let path = format!("/v1/datasets/{}/jobs", dataset.id);
    let paths: Vec<String> = (0..8).map(|_| fresh(&path)).collect();
    let tries = paths.iter().map(|path| ana.put(path, json!({})));
    let answers = futures_util::future::join_all(tries).await;
    let mut granted = Vec::new();
    for answer in answers {
        if answer.status() == StatusCode::CREATED {
            granted.push(answer.json::<Job>().await.unwrap());
        } else {
            assert_eq!(problem(answer, 409).await.kind, ProblemKind::BudgetSpent);
        }
    }
    assert_eq!(granted.len(), 2);
    // Another job can have a run that was not begun.
    let _: Job = ana
        .post(&format!("/v1/jobs/{}/cancel", granted[0].id))
        .await;
    ana.new_job(dataset.id).await;
    ana.no_job(dataset.id).await;
    ana.refused(
        Method::POST,
        &format!("/v1/jobs/{}/retry", granted[0].id),
        409,
    )
    .await;
}

/// Names and notes are for people: changing them changes nothing else, and only holders can do so.
async fn names_and_notes_change_nothing_else(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let eve = service.user("eve@x.example").await;
    let job = ana.done_job().await;
    let dataset = format!("/v1/datasets/{}", job.dataset);
    let before: serde_json::Value = ana.get(&dataset).await;
    let renamed = json!({ "name": "Admissions, 2026" });
    let name = format!("{dataset}/name");
    for _ in 0..2 {
        let renamed: Dataset = read(ana.put(&name, renamed.clone()).await, StatusCode::OK).await;
        assert_eq!(renamed.name, "Admissions, 2026");
    }
    let mut expected = before;
    expected["name"] = "Admissions, 2026".into();
    assert_eq!(ana.get::<serde_json::Value>(&dataset).await, expected);
    let path = format!("/v1/jobs/{}/synthetic?rows=1", job.id);
    let drawn = ana.send(Method::GET, &path, None).await;
    let file = drawn.headers()["content-disposition"].to_str().unwrap();
    assert!(file.contains("Admissions__2026-synthetic"), "{file}");
    for wrong in ["", "a\nb", &"x".repeat(201)] {
        problem(ana.put(&name, json!({ "name": wrong })).await, 422).await;
    }
    problem(eve.put(&name, renamed).await, 404).await;

    let note = format!("/v1/jobs/{}/note", job.id);
    let noted: Job = read(
        ana.put(&note, json!({ "note": "fewer columns" })).await,
        StatusCode::OK,
    )
    .await;
    assert_eq!(
        (noted.note.as_str(), noted.updated_at),
        ("fewer columns", job.updated_at)
    );
    let listed: Page<Job> = ana.get(&format!("{dataset}/jobs")).await;
    assert_eq!(listed.items[0].note, "fewer columns");
    problem(
        ana.put(&note, json!({ "note": "x".repeat(201) })).await,
        422,
    )
    .await;
    problem(eve.put(&note, json!({ "note": "mine" })).await, 404).await;
    let bare: Job = read(ana.put(&note, json!({ "note": "" })).await, StatusCode::OK).await;
    assert_eq!(bare.note, "");
}

async fn deletion_stops_jobs_and_removes_their_data(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let kept = ana.done_job().await;
    // A running job is stopped and leaves no data; its worker continues with other jobs.
    service.computation.answer(Manner::Hang);
    let under_way = ana.ready_dataset(terms()).await.id;
    let stopped = ana.new_job(under_way).await.id;
    ana.wait_for(stopped, JobState::Running).await;
    let stopped_path = format!("/v1/datasets/{under_way}");
    let deleted = ana.send(Method::DELETE, &stopped_path, None).await;
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    ana.refused(Method::GET, &format!("/v1/jobs/{stopped}"), 404)
        .await;
    service.computation.answer(Manner::Release(0));
    let dataset = ana.ready_dataset(terms()).await;
    let path = format!("/v1/datasets/{}", dataset.id);
    let job = ana.new_job(dataset.id).await;
    ana.wait_for(job.id, JobState::Done).await;
    assert!(
        !service
            .blobs()
            .join(format!("datasets/{under_way}"))
            .exists()
    );
    let blobs = |id: Uuid| service.blobs().join(format!("datasets/{id}/jobs"));
    assert!(
        std::fs::read_dir(blobs(dataset.id))
            .unwrap()
            .next()
            .is_some()
    );
    let deleted = ana.send(Method::DELETE, &path, None).await;
    assert_eq!(deleted.status(), StatusCode::NO_CONTENT);
    match std::fs::read_dir(blobs(dataset.id).join(job.id.to_string())) {
        Ok(mut files) => assert!(files.next().is_none()),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
    ana.refused(Method::DELETE, &path, 404).await;
    for path in [
        path.clone(),
        format!("{path}/jobs"),
        format!("/v1/jobs/{}", job.id),
        format!("/v1/jobs/{}/events", job.id),
        format!("/v1/jobs/{}/releases", job.id),
        format!("/v1/jobs/{}/model", job.id),
        format!("/v1/jobs/{}/model/file", job.id),
        format!("/v1/jobs/{}/synthetic", job.id),
    ] {
        ana.refused(Method::GET, &path, 404).await;
    }
    let _: ModelView = ana.get(&format!("/v1/jobs/{}/model", kept.id)).await;
}

/// Returns a stream of a job's events that ends only with the job.
async fn open_stream(service: &Service, token: &str, job: Uuid) -> JoinHandle<()> {
    let request = reqwest::Client::new()
        .get(format!("{}/v1/jobs/{job}/events", service.base))
        .bearer_auth(token);
    let mut response = request.send().await.unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    tokio::spawn(async move { while let Ok(Some(_)) = response.chunk().await {} })
}

async fn ends_soon(stream: JoinHandle<()>, after: &str) {
    let ended = tokio::time::timeout(Duration::from_secs(10), stream).await;
    assert!(ended.is_ok(), "the stream is open after {after}");
}

async fn streams_end_with_the_tokens_of_their_account(kind: Kind) {
    let service = Service::start_working(kind).await;
    service.computation.answer(Manner::Hang);
    let ana = service.user("ana@x.example").await;
    let ben = service.user("ben@x.example").await;
    let mut jobs = Vec::new();
    for user in [&ana, &ben] {
        let dataset = user.ready_dataset(terms()).await;
        let job = user.new_job(dataset.id).await;
        user.wait_for(job.id, JobState::Running).await;
        jobs.push(job.id);
    }
    let of_ben = open_stream(&service, ben.token(), jobs[1]).await;
    let change = |change| service.state.change_account("ana@x.example", change);
    let reset = Change::Password(Secret(PASSWORD.to_owned()));
    for (change_of_ana, name) in [
        (reset, "a new password"),
        (Change::Disable, "the account was disabled"),
    ] {
        let session: Session = read(
            service.sign_in("ana@x.example", PASSWORD).await,
            StatusCode::CREATED,
        )
        .await;
        let stream = open_stream(&service, &session.access_token.0, jobs[0]).await;
        change(change_of_ana).await.unwrap();
        ends_soon(stream, name).await;
    }
    change(Change::Enable).await.unwrap();
    let session: Session = read(
        service.sign_in("ana@x.example", PASSWORD).await,
        StatusCode::CREATED,
    )
    .await;
    let token = session.access_token.0.as_str();
    let stream = open_stream(&service, token, jobs[0]).await;
    let path = "/v1/account/sessions";
    let ended = service
        .send_as(Some(token), Method::DELETE, path, None)
        .await;
    assert!(ended.status().is_success());
    ends_soon(stream, "all sessions were ended").await;
    assert!(!of_ben.is_finished(), "another account's stream stays open");
}

/// A termination signal ends open streams and returns the job to the queue at once.
async fn stopping_ends_streams_and_returns_the_job(kind: Kind) {
    let service = Service::start_working(kind).await;
    service.computation.answer(Manner::Hang);
    let ana = service.user("ana@x.example").await;
    let dataset = ana.ready_dataset(terms()).await;
    let job = ana.new_job(dataset.id).await;
    ana.wait_for(job.id, JobState::Running).await;
    let request = reqwest::Client::new()
        .get(format!("{}/v1/jobs/{}/events", service.base, job.id))
        .bearer_auth(ana.token());
    let response = request.send().await.unwrap();
    let stream = tokio::spawn(response.text());
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(ana);
    assert!(service.stop().await < Duration::from_secs(3));
    let events = crate::common::parse_events(&stream.await.unwrap().unwrap());
    assert!(!events.is_empty());
}

/// The owner's program was killed after it had marked the dataset, between the deletions at two services.
async fn deletion_that_its_program_left_is_continued(kind: Kind) {
    let mut service = Service::start(kind).await;
    let (id, kept, token);
    {
        let ana = service.user("ana@x.example").await;
        id = ana.ready_dataset(terms()).await.id;
        kept = ana.ready_dataset(terms()).await.id;
        let path = format!("/v1/datasets/{id}/deletion");
        for _ in 0..2 {
            let marked = ana.send(Method::PUT, &path, None).await;
            assert_eq!(marked.status(), StatusCode::NO_CONTENT);
        }
        let shown: Dataset = ana.get(&format!("/v1/datasets/{id}")).await;
        assert_eq!(shown.state, DatasetState::Deleting);
        let refused = ana.no_job(id).await.detail.unwrap();
        assert!(refused.contains("being deleted"), "{refused}");
        token = ana.token().to_owned();
    }
    assert!(service.computation.deletions(id).is_empty());
    service.work();
    let path = format!("/v1/datasets/{id}");
    let started = Instant::now();
    loop {
        let shown = service.send_as(Some(&token), Method::GET, &path, None);
        if shown.await.status() == StatusCode::NOT_FOUND {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "not deleted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Both peers of this test are the same stand-in.
    assert_eq!(service.computation.deletions(id).len(), 2);
    let path = format!("/v1/datasets/{kept}");
    let other = service.send_as(Some(&token), Method::GET, &path, None);
    assert_eq!(other.await.status(), StatusCode::OK);
    assert!(service.computation.deletions(kept).is_empty());
    service.stop().await;
}

/// A dataset with a damaged object keeps the computation service waiting. The test's services have one worker.
async fn waiting_job_does_not_delay_another_account(kind: Kind) {
    let service = Service::start_working(kind).await;
    let eve = service.user("eve@x.example").await;
    let ana = service.user("ana@x.example").await;
    let damaged = eve.ready_dataset(terms()).await;
    service.computation.hang(damaged.id);
    let waiting = eve.new_job(damaged.id).await;
    eve.wait_until(waiting.id, |job| job.progress.is_some())
        .await;
    let dataset = ana.ready_dataset(terms()).await;
    let asked = Instant::now();
    let job = ana.new_job(dataset.id).await;
    let taken = ana.wait_until(job.id, |job| job.progress.is_some()).await;
    let waited = asked.elapsed();
    println!("another account's job waited {:.2} s", waited.as_secs_f64());
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    ana.wait_for(taken.id, JobState::Done).await;
    assert_eq!(eve.job(waiting.id).await.state, JobState::Running);
    service.stop().await;
}

async fn damaged_dataset_is_named_and_does_not_affect_others(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let (damaged, whole) = (
        ana.ready_dataset(terms()).await.id,
        ana.ready_dataset(terms()).await.id,
    );
    let damage = "UPDATE datasets SET terms = '{' WHERE id = $1";
    sqlx::query(damage)
        .bind(damaged.to_string())
        .execute(service.state.base().store.pool())
        .await
        .unwrap();
    let ids = |page: &Page<Dataset>| Vec::from_iter(page.items.iter().map(|dataset| dataset.id));
    let listed: Page<Dataset> = ana.get("/v1/datasets").await;
    assert_eq!(
        (ids(&listed), &listed.damaged),
        (vec![whole], &vec![damaged])
    );
    // A damaged dataset does not end a list before its last page.
    let first: Page<Dataset> = ana.get("/v1/datasets?limit=1").await;
    let next = first.next.clone().unwrap();
    let second: Page<Dataset> = ana.get(&format!("/v1/datasets?limit=1&after={next}")).await;
    let pages = [ids(&first), first.damaged, ids(&second), second.damaged];
    assert_eq!(pages.concat(), [whole, damaged]);
    assert_eq!(second.next, None);
    let path = format!("/v1/datasets/{damaged}");
    let told = ana.refused(Method::GET, &path, 500).await.detail.unwrap();
    assert!(told.contains(&damaged.to_string()), "{told}");
    let job = ana.new_job(whole).await;
    ana.wait_for(job.id, JobState::Done).await;
    let deleted = ana.send(Method::DELETE, &path, None).await;
    assert!(deleted.status().is_success());
    let left: Page<Dataset> = ana.get("/v1/datasets").await;
    assert_eq!((ids(&left), left.damaged), (vec![whole], vec![]));
    service.stop().await;
}

async fn damaged_model_is_named_and_fitted_again(kind: Kind) {
    let service = Service::start_working(kind).await;
    let ana = service.user("ana@x.example").await;
    let job = ana.done_job().await;
    let model = format!("datasets/{}/jobs/{}/model", job.dataset, job.id);
    let path = service.blobs().join(model);
    let whole = std::fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    // A bit in the middle of the last table, which leaves the format valid.
    let place = damaged.len() - 40;
    damaged[place] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let table = format!("/v1/jobs/{}/synthetic?rows=5", job.id);
    let told = ana.refused(Method::GET, &table, 500).await.detail.unwrap();
    for id in [job.id, job.dataset] {
        assert!(told.contains(&id.to_string()), "{told}");
    }
    let spent = job.spent;
    let _: Job = ana.post(&format!("/v1/jobs/{}/retry", job.id)).await;
    let job = ana.wait_for(job.id, JobState::Done).await;
    assert_eq!(job.spent, spent);
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    let drawn = ana.send(Method::GET, &table, None).await;
    assert_eq!(drawn.status(), StatusCode::OK);
    let again = format!("/v1/jobs/{}/retry", job.id);
    ana.refused(Method::POST, &again, 409).await;
    service.stop().await;
}
