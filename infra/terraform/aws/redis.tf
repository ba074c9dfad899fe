resource "random_password" "redis" {
  length  = 64
  special = false
}

resource "aws_elasticache_subnet_group" "redis" {
  name       = var.name
  subnet_ids = aws_subnet.private[*].id
}

resource "aws_elasticache_parameter_group" "redis" {
  name   = "${var.name}-valkey8"
  family = "valkey8"

  # The Redis is not a cache: a full server must refuse writes and not evict keys.
  parameter {
    name  = "maxmemory-policy"
    value = "noeviction"
  }
}

resource "aws_elasticache_replication_group" "redis" {
  replication_group_id       = var.name
  description                = "State of the platform."
  engine                     = "valkey"
  engine_version             = "8.0"
  node_type                  = var.redis_node_type
  num_cache_clusters         = var.redis_nodes
  automatic_failover_enabled = var.redis_nodes > 1
  multi_az_enabled           = var.redis_nodes > 1
  port                       = 6379
  parameter_group_name       = aws_elasticache_parameter_group.redis.name
  subnet_group_name          = aws_elasticache_subnet_group.redis.name
  security_group_ids         = [aws_security_group.redis.id]
  transit_encryption_enabled = true
  transit_encryption_mode    = "required"
  at_rest_encryption_enabled = true
  auth_token                 = random_password.redis.result
  auth_token_update_strategy = "ROTATE"
  snapshot_retention_limit   = var.redis_snapshot_days
  final_snapshot_identifier  = "${var.name}-final"
  apply_immediately          = false

  lifecycle {
    prevent_destroy = true
  }
}

# Only the functions that seal secrets in the Redis read it. To change it, put a new key in front of the old one.
resource "random_bytes" "encryption_key" {
  length = 32
}

resource "aws_secretsmanager_secret" "encryption_key" {
  name_prefix = "${var.name}/encryption-key-"
  description = "Keys that seal secrets in the Redis; the first one seals."
}

resource "aws_secretsmanager_secret_version" "encryption_key" {
  secret_id     = aws_secretsmanager_secret.encryption_key.id
  secret_string = random_bytes.encryption_key.base64

  lifecycle {
    ignore_changes = [secret_string]
  }
}

resource "aws_secretsmanager_secret" "redis_url" {
  name_prefix = "${var.name}/redis-url-"
  description = "URL of the Redis, with its password."
}

resource "aws_secretsmanager_secret_version" "redis_url" {
  secret_id     = aws_secretsmanager_secret.redis_url.id
  secret_string = "rediss://:${random_password.redis.result}@${aws_elasticache_replication_group.redis.primary_endpoint_address}:6379"
}
