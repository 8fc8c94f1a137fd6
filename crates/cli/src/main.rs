//! The binary `thought`.

fn main() -> std::process::ExitCode {
    thought_cli::main()
}
