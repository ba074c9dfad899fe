output "server" {
  description = "Server for kubeconfigs."
  value       = "https://${var.domain}/kubernetes/management"
}

output "address" {
  description = "Address to which the DNS entry of the domain must lead."
  value       = google_compute_global_address.api.address
}

output "redis_url_secret" {
  description = "Name of the secret with the URL of the Redis."
  value       = google_secret_manager_secret.redis["redis-url"].secret_id
}
