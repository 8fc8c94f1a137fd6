//! What stands in the environment changes nothing. The environment of a process is fixed at its start, so each test
//! runs its second half in a process of its own.

use thought_broker::{Api, Reply};

use crate::server::{Script, Server};
use crate::support::{PATIENT, block_on, body, broker, http};

/// Set in the second process to what it needs.
const INNER: &str = "THOUGHT_BROKER_TEST_INNER";

/// The argument of the second half, if this process is to run it.
pub(crate) fn inner() -> Option<String> {
    std::env::var_os(INNER).map(|value| value.into_string().unwrap())
}

/// Runs the test of that name again, in a process with these variables, and requires it to pass.
#[expect(
    clippy::disallowed_methods,
    reason = "a variable of the environment can only be set for a new process"
)]
pub(crate) fn run_inner(test: &str, argument: &str, variables: &[(&str, &str)]) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(INNER, argument)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let told =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

#[test]
fn proxies_of_the_environment_are_ignored() {
    if let Some(root) = inner() {
        let broker = broker(Api::AnthropicMessages, &root, PATIENT);
        let reply = block_on(broker.request(body()));
        assert!(matches!(reply, Reply::Answered { .. }), "{reply:?}");
        return;
    }
    let provider = Server::start(Script::Answer(http("200 OK", &[], b"{}")));
    let proxy = Server::start(Script::Answer(http("200 OK", &[], b"{}")));
    let address = proxy.base_url();
    let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let mut variables: Vec<(&str, &str)> = names.iter().map(|name| (*name, address.as_str())).collect();
    variables.extend([("no_proxy", ""), ("NO_PROXY", "")]);
    run_inner("environment::proxies_of_the_environment_are_ignored", &provider.base_url(), &variables);
    assert_eq!(provider.finish().requests.len(), 1);
    assert_eq!(proxy.finish().connections, 0);
}
