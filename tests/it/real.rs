//! The host against a real API server.

mod hung_webhook;
mod installation;
mod kubectl_plugin;
mod mirror;
mod plugin_accounts;
mod plugin_objects;
mod plugin_sources;
mod pods;
mod two_tenants;
mod uninstallation;
