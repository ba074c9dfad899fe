resource "google_project_service" "used" {
  for_each = toset([
    "certificatemanager.googleapis.com",
    "cloudscheduler.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "redis.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "servicenetworking.googleapis.com",
  ])

  service            = each.key
  disable_on_destroy = false
}

resource "google_logging_project_bucket_config" "functions" {
  project        = var.project
  location       = var.region
  bucket_id      = "${var.name}-functions"
  retention_days = var.log_retention_days
}

resource "google_logging_project_sink" "functions" {
  name                   = "${var.name}-functions"
  destination            = "logging.googleapis.com/${google_logging_project_bucket_config.functions.id}"
  filter                 = "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=~\"^${var.name}-\""
  unique_writer_identity = true
}
