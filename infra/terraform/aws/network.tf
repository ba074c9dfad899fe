data "aws_availability_zones" "available" {
  state = "available"
}

# The network has no route to the internet: the functions need only Redis and Secrets Manager.
resource "aws_vpc" "main" {
  cidr_block           = var.network_cidr
  enable_dns_hostnames = true
  enable_dns_support   = true
}

resource "aws_subnet" "private" {
  count = 2

  vpc_id            = aws_vpc.main.id
  cidr_block        = cidrsubnet(var.network_cidr, 4, count.index)
  availability_zone = data.aws_availability_zones.available.names[count.index]
}

resource "aws_security_group" "functions" {
  name        = "${var.name}-functions"
  description = "The functions."
  vpc_id      = aws_vpc.main.id
}

resource "aws_security_group" "redis" {
  name        = "${var.name}-redis"
  description = "The Redis."
  vpc_id      = aws_vpc.main.id
}

resource "aws_security_group" "endpoint" {
  name        = "${var.name}-endpoint"
  description = "The endpoint of Secrets Manager."
  vpc_id      = aws_vpc.main.id
}

resource "aws_vpc_security_group_egress_rule" "functions_redis" {
  security_group_id            = aws_security_group.functions.id
  referenced_security_group_id = aws_security_group.redis.id
  ip_protocol                  = "tcp"
  from_port                    = 6379
  to_port                      = 6379
}

resource "aws_vpc_security_group_ingress_rule" "redis_functions" {
  security_group_id            = aws_security_group.redis.id
  referenced_security_group_id = aws_security_group.functions.id
  ip_protocol                  = "tcp"
  from_port                    = 6379
  to_port                      = 6379
}

resource "aws_vpc_security_group_egress_rule" "functions_endpoint" {
  security_group_id            = aws_security_group.functions.id
  referenced_security_group_id = aws_security_group.endpoint.id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

resource "aws_vpc_security_group_ingress_rule" "endpoint_functions" {
  security_group_id            = aws_security_group.endpoint.id
  referenced_security_group_id = aws_security_group.functions.id
  ip_protocol                  = "tcp"
  from_port                    = 443
  to_port                      = 443
}

resource "aws_vpc_endpoint" "secrets" {
  vpc_id              = aws_vpc.main.id
  service_name        = "com.amazonaws.${var.region}.secretsmanager"
  vpc_endpoint_type   = "Interface"
  private_dns_enabled = true
  subnet_ids          = aws_subnet.private[*].id
  security_group_ids  = [aws_security_group.endpoint.id]
}
