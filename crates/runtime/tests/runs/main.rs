//! A consumer against the real embedded store, with a jail, a model and a clock that the tests own.

mod crash;
mod held;
mod install;
mod mail;
mod operator;
mod order;
mod outcomes;
mod ports;
mod proposals;
mod stop;
mod support;
mod turns;
